import time, os
from agents.worker import birth, limits, template, forking, wire, namespaces, privileges
from agents.worker.sandbox import Sandbox
log=[]
def wrap(o,n,label=None):
    f=getattr(o,n)
    def g(*a,**k):
        b=time.monotonic()
        try: return f(*a,**k)
        finally: log.append((label or n,b,time.monotonic()))
    setattr(o,n,g)
wrap(birth,'_end_with_template'); wrap(birth,'_take_over_output'); wrap(birth,'_close_all_but'); wrap(birth,'_prepare'); wrap(birth.limits,'apply')
wrap(birth.privileges,'give_up_privileges'); 
from agents.worker import namespaces
wrap(namespaces,'enter','ns.enter'); wrap(namespaces,'_hide_raw_devices'); wrap(namespaces,'_close_kernel_settings'); wrap(namespaces,'_hide')
g0=birth.grow_up
def grow_up(*a):
    log.append(('grow_up begins',time.monotonic(),time.monotonic()))
    return g0(*a)
template.grow_up=grow_up
f0=template.fork
def fork(*a):
    log.append(('fork called',time.monotonic(),time.monotonic())); return f0(*a)
template.fork=fork
class Room:
    def __init__(self,s): log.append(('room',time.monotonic(),time.monotonic()))
    def handle(self,op,b):
        return {"log":log,"now":time.monotonic()}
