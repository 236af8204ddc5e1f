import { type ChildProcess, spawn } from 'node:child_process'

/** Kills process groups after the end of this process, including SIGKILL. */
export type ProcessGuardian = {
  /** Adds a process group to kill at the end of this process. */
  watch(group: number): void
  unwatch(group: number): void
}

const shell = '/bin/sh'

/**
 * Reads `+1234` and `-1234` until its input ends, which happens at any end of the gateway, SIGKILL included.
 * The remaining groups then have one second to end by themselves. Each group is a shell variable, so that
 * removal needs no search.
 */
const script = `
trap '' HUP INT TERM
while read -r line; do
  case $line in
    +*) eval "group_\${line#+}=1" ;;
    -*) unset "group_\${line#-}" ;;
  esac
done
found=
for variable in $(set); do
  case $variable in
    group_[0-9]*) group=\${variable#group_}; found="$found \${group%%=*}" ;;
  esac
done
[ -z "$found" ] && exit 0
sleep 1
for group in $found; do kill -KILL "-$group"; done
`

/**
 * Starts a small shell while process groups exist. Children that ignore the end of their input would
 * otherwise survive a killed gateway. Without a shell there is no guardian.
 */
export function createProcessGuardian(): ProcessGuardian {
  const watched = new Set<number>()
  let guardian: ChildProcess | undefined

  return {
    watch(group) {
      watched.add(group)
      if (guardian) send(`+${group}`)
      else start()
    },
    unwatch(group) {
      watched.delete(group)
      send(`-${group}`)
      if (watched.size > 0) return
      guardian?.stdin?.end()
      guardian = undefined
    },
  }

  function start(): void {
    // Its own session excludes it from signals to the process group of the gateway.
    const child = spawn(shell, ['-c', script], {
      detached: true,
      env: { PATH: '/usr/bin:/bin' },
      stdio: ['pipe', 'ignore', 'ignore'],
    })
    const over = () => {
      if (guardian === child) guardian = undefined
    }
    child.on('error', over)
    child.on('exit', over)
    child.stdin.on('error', over)
    // The guardian must not prevent the exit of this process.
    child.unref()
    guardian = child
    for (const group of watched) send(`+${group}`)
  }

  function send(line: string): void {
    guardian?.stdin?.write(`${line}\n`)
  }
}
