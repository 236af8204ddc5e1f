import { type ChildProcess, spawn } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'

// `npm run check`: static verification of the tree. Runs every part, so that one run reports all findings.
// `npm run check types lint` runs only the parts named. Parts are independent and run in parallel; the output
// of each is printed when it ends. The slowest parts come first.

type Part = { name: string; command: string; args: string[] }

const parts: Part[] = [
  part('types', 'tsc -p . --incremental --tsBuildInfoFile .cache/check.tsbuildinfo'),
  part('ui-types', 'tsc -p ui --incremental --tsBuildInfoFile .cache/ui.tsbuildinfo'),
  part('dead-code', 'knip'),
  part('lint', 'biome ci .'),
  part(
    'rules',
    'vitest run --project unit gateway/test/imports.test.ts gateway/test/repository.test.ts gateway/test/rules',
  ),
  part('language', 'node scripts/language/language.ts'),
  part('docs', 'node scripts/generate-docs.ts --check'),
]

const wanted = process.argv.slice(2)
const unknown = wanted.filter((name) => parts.every((part) => part.name !== name))
if (unknown.length > 0) {
  const names = parts.map(({ name }) => name).join(', ')
  process.stderr.write(`unknown part ${unknown.join(', ')}, expected some of ${names}\n`)
  process.exit(1)
}

const children = new Set<ChildProcess>()
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    for (const child of children) child.kill(signal)
    process.exit(1)
  })
}

const queue = parts.filter(({ name }) => wanted.length === 0 || wanted.includes(name))
const failed: string[] = []
await Promise.all(Array.from({ length: Math.min(queue.length, availableParallelism()) }, runQueued))

process.stdout.write(
  failed.length === 0 ? '\ncheck: all parts passed\n' : `\ncheck: failed: ${failed.join(', ')}\n`,
)
process.exitCode = failed.length === 0 ? 0 : 1

async function runQueued(): Promise<void> {
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
    const startedAt = performance.now()
    const { isPassed, output } = await run(next)
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
    const command = [next.command, ...next.args].join(' ')
    process.stdout.write(
      `\n== ${next.name}: ${command}\n${output}${isPassed ? 'passed' : 'FAILED'}, ${seconds} s\n`,
    )
    if (!isPassed) failed.push(next.name)
  }
}

/**
 * Runs a program of node_modules/.bin, which is first on PATH. Its output streams are merged in order of
 * arrival.
 */
function run({ command, args }: Part): Promise<{ isPassed: boolean; output: string }> {
  const child = spawn(command, args, {
    cwd: fileURLToPath(new URL('..', import.meta.url)),
    stdio: ['ignore', 'pipe', 'pipe'],
    shell: process.platform === 'win32',
    env: { ...process.env, ...(process.stdout.isTTY ? { FORCE_COLOR: '1' } : {}) },
  })
  children.add(child)
  const output: string[] = []
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => output.push(text))
  }
  return new Promise((resolve) => {
    child.on('error', (error) => output.push(`${error.message}\n`))
    child.on('close', (code) => {
      children.delete(child)
      resolve({ isPassed: code === 0, output: output.join('') })
    })
  })
}

function part(name: string, line: string): Part {
  const [command = '', ...args] = line.split(' ')
  return { name, command, args }
}
