import { type ChildProcess, spawn } from 'node:child_process'

/** Kills process groups once this process is gone, however it went. */
export type ProcessGuardian = {
  /** Kills the group with this number unless it is forgotten before this process ends. */
  watch(group: number): void
  forget(group: number): void
}

const shell = '/bin/sh'

/**
 * Reads `+1234` and `-1234` until its input ends, which it does when the gateway has ended in whatever way, SIGKILL included.
 * What is still watched then gets a moment to notice the end of its own input. Each group is a variable of the shell,
 * so that forgetting one takes no search.
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
 * A small shell that runs while there is something to watch. Children that ignore the end of their input would otherwise
 * outlive a gateway that was killed. Where the system has no shell, nobody guards.
 */
export function createProcessGuardian(): ProcessGuardian {
  const watched = new Set<number>()
  let guardian: ChildProcess | undefined

  return {
    watch(group) {
      watched.add(group)
      if (guardian) tell(`+${group}`)
      else start()
    },
    forget(group) {
      watched.delete(group)
      tell(`-${group}`)
      if (watched.size > 0) return
      guardian?.stdin?.end()
      guardian = undefined
    },
  }

  function start(): void {
    // A session of its own keeps it out of reach of what is sent to the gateway's whole group.
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
    // It must not keep this process alive.
    child.unref()
    guardian = child
    for (const group of watched) tell(`+${group}`)
  }

  function tell(line: string): void {
    guardian?.stdin?.write(`${line}\n`)
  }
}
