import { spawn, spawnSync } from 'node:child_process'
import { endAfter } from './cleanup.ts'
import { freePort } from './free-port.ts'
import { until } from './wait.ts'

const interpreter = 'python3'

/** Whether Python is installed here with these modules; tests that need them are skipped elsewhere. */
export function hasPython(modules: readonly string[]): boolean {
  const check = `import importlib.util as u, sys; sys.exit(any(u.find_spec(m) is None for m in sys.argv[1:]))`
  return spawnSync(interpreter, ['-c', check, ...modules]).status === 0
}

/**
 * Runs a Python server until the end of the file. `args` receives the port that it must listen on. Resolves
 * to the port.
 */
export async function startPython(args: (port: number) => readonly string[], cwd?: string): Promise<number> {
  const port = await freePort()
  const child = spawn(interpreter, args(port), { stdio: ['ignore', 'ignore', 'pipe'], cwd, detached: true })
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  let output = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output += text
  })
  endAfter('file', async () => {
    // Its own process group: some servers start workers, and interpreters may stand behind a shell.
    if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
    await ended
  })
  await until(
    'the Python server listens',
    async () => {
      if (child.exitCode !== null) throw new Error(`the Python server ended: ${output}`)
      return await fetch(`http://127.0.0.1:${port}/`).then(
        () => true,
        () => false,
      )
    },
    45_000,
  )
  return port
}
