import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Tollgate } from '../subjects/tollgate.ts'
import type { MemoryReport } from './memory-probe.ts'
import type { Issuer } from './tokens.ts'
import { openSession } from './workloads.ts'

/** Kilobytes for each session. */
export type SessionMemory = { sessions: number; heapKilobytes: number; residentKilobytes: number }

/** Flags of the runtime with which a process can be asked for its memory. */
export const probeFlags = ['--expose-gc', `--import=${new URL('./memory-probe.ts', import.meta.url).href}`]

/**
 * Memory of one idle session without an open stream; each session has its own user; measured after a warm-up.
 */
export async function sessionMemory(
  tollgate: Tollgate,
  tokens: Issuer,
  sessions: number,
): Promise<SessionMemory> {
  let users = 0
  const open = async (count: number) => {
    for (let left = count; left > 0; left -= 20) {
      const batch = Array.from({ length: Math.min(20, left) }, () => {
        users += 1
        return openSession(tollgate, tokens.token(`user-${users}`))
      })
      await Promise.all(batch)
    }
  }
  await open(Math.ceil(sessions / 5))
  const before = await memoryOf(tollgate)
  await open(sessions)
  const after = await memoryOf(tollgate)
  return {
    sessions,
    heapKilobytes: (after.heapBytes - before.heapBytes) / sessions / 1000,
    residentKilobytes: (after.residentBytes - before.residentBytes) / sessions / 1000,
  }
}

async function memoryOf({ child, folder }: Tollgate): Promise<MemoryReport> {
  const file = join(folder, 'memory.json')
  rmSync(file, { force: true })
  // Connections that were closed are gone after a moment.
  await delay(500)
  child.kill('SIGUSR2')
  for (let attempt = 0; attempt < 200; attempt++) {
    await delay(50)
    try {
      const report: MemoryReport = JSON.parse(readFileSync(file, 'utf8'))
      return report
    } catch {
      // Not written yet, or not all of it.
    }
  }
  throw new Error('the process does not say how much memory it uses')
}
