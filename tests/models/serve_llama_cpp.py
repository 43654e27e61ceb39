"""Runs llama.cpp's own HTTP server out of the package xllamacpp: PORT MODEL CONTEXT [TEMPLATE].

It needs nothing of rappd, for it runs with the Python of the environment that has that package.
"""

import signal
import sys

import xllamacpp


def main() -> None:
    port, model, context = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_parallel = 2
    params.kv_unified = True  # llama-server's own default where the number of slots is not given
    params.n_ctx = context
    params.cpuparams.n_threads = 1  # more than are free make each other wait
    params.sampling.temp = 0.0
    params.ctx_shift = False
    params.use_jinja = True
    server = xllamacpp.Server(params)
    print("listening", server.listening_address, flush=True)
    signal.pause()


if __name__ == "__main__":
    main()
