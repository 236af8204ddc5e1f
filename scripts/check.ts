import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

// `npm run check`: everything about the tree that can be wrong without a test of behaviour failing. Runs every part, so
// that one run shows all that is to do. `npm run check types lint` runs only the parts named.

const parts: Record<string, string[]> = {
  types: ['tsc', '-p', '.'],
  lint: ['biome', 'ci', '.'],
  'dead-code': ['knip'],
  rules: [
    'vitest',
    'run',
    '--project',
    'unit',
    'gateway/test/imports.test.ts',
    'gateway/test/repository.test.ts',
  ],
  docs: ['node', 'scripts/generate-docs.ts', '--check'],
}

const cwd = fileURLToPath(new URL('..', import.meta.url))
const wanted = process.argv.slice(2)
const unknown = wanted.filter((name) => !Object.hasOwn(parts, name))
if (unknown.length > 0) {
  process.stderr.write(
    `unknown part ${unknown.join(', ')}, expected some of ${Object.keys(parts).join(', ')}\n`,
  )
  process.exit(1)
}

const failed: string[] = []
for (const [name, [command = '', ...args]] of Object.entries(parts)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue
  process.stdout.write(`\n== ${name}: ${command} ${args.join(' ')}\n`)
  // The runner has put node_modules/.bin first on PATH.
  const { status, error } = spawnSync(command, args, {
    cwd,
    stdio: 'inherit',
    shell: process.platform === 'win32',
  })
  if (error) process.stderr.write(`${error.message}\n`)
  if (status !== 0) failed.push(name)
}

process.stdout.write(
  failed.length === 0 ? '\ncheck: all parts passed\n' : `\ncheck: failed: ${failed.join(', ')}\n`,
)
process.exitCode = failed.length === 0 ? 0 : 1
