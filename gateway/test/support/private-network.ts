import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { endAfter } from './cleanup.ts'

/**
 * Whether this machine lets a test make a network of its own: Linux with user namespaces, `unshare` and `ip`.
 */
export const hasPrivateNetwork =
  spawnSync('unshare', ['-rn', 'ip', 'link', 'set', 'lo', 'up'], { stdio: 'ignore' }).status === 0

export type ScriptRun = { status: number | null; output: string }

/**
 * Runs a bash script in a network namespace of its own, where every port is free and nothing but loopback
 * exists, so that documented commands run as they stand. Programs left in the background end with the script.
 */
export function runInPrivateNetwork(
  script: string,
  { cwd, env, limitMs = 110_000 }: { cwd: string; env: NodeJS.ProcessEnv; limitMs?: number },
): Promise<ScriptRun> {
  // The PID namespace kills every process in it when its first one exits.
  const args = ['-rnp', '--fork', '--kill-child', 'bash', '-c', `ip link set lo up\n${script}`]
  const child = spawn('unshare', args, { cwd, env })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      output += chunk
    })
  }
  const timer = setTimeout(() => child.kill('SIGKILL'), limitMs)
  return new Promise((resolve) => {
    child.on('close', (status) => {
      clearTimeout(timer)
      resolve({ status, output })
    })
  })
}

/** A folder that is removed after the test. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-commands-'))
  endAfter('test', () => rmSync(folder, { recursive: true, force: true }))
  return folder
}
