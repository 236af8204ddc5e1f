import type { ProcessGuardian } from '../process/guardian.ts'

/** Process groups of the programs of all data planes. */
export type ChildGroups = {
  watch(plane: number, group: number): void
  unwatch(group: number): void
  /** Kills the programs of a data plane that has ended. */
  kill(plane: number): void
  killAll(): void
}

export function createChildGroups(guardian: ProcessGuardian): ChildGroups {
  const groups = new Map<number, number>()

  function kill(group: number): void {
    try {
      process.kill(-group, 'SIGKILL')
    } catch {
      // It has ended already.
    }
  }

  return {
    watch(plane, group) {
      groups.set(group, plane)
      guardian.watch(group)
    },
    unwatch(group) {
      if (groups.delete(group)) guardian.unwatch(group)
    },
    kill(plane) {
      for (const [group, owner] of groups) {
        if (owner !== plane) continue
        kill(group)
        groups.delete(group)
        guardian.unwatch(group)
      }
    },
    killAll() {
      for (const group of groups.keys()) kill(group)
    },
  }
}
