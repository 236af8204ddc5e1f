import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** All tests over real sockets, with four data planes. */

const root = fileURLToPath(new URL('../../..', import.meta.url))
const short = process.argv.includes('--short')
const files = short ? ['gateway/test/e2e/worker-threads.test.ts'] : []

function run(command: string, args: readonly string[], env: Record<string, string> = {}): void {
  const { status } = spawnSync(command, args, {
    stdio: 'inherit',
    cwd: root,
    env: { ...process.env, ...env },
  })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} failed`)
}

run('npx', ['--no-install', 'vitest', 'run', '--project', 'e2e', '--retry=1', ...files], {
  TOLLGATE_TEST_WORKERS: '4',
})
