# Other machines compress at the same time, each on its own processor; their lines are shared, or slow.
G=; command -v gzip >/dev/null 2>&1 && G=gzip
archive() { tar "$@" -cf - .; err tar $?; }
extract() { if [ -n "$G" ]; then gzip -dc | tar -xof -; else tar -xof -; fi; }
H=; Z=
holes() {
  case $(tar --version 2>&1) in
    *GNU*) H=holes; Z=-S ;;
    *bsdtar*) H=holes ;;
  esac
}
