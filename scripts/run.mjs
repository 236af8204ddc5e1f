// Runs one task of the project: `node scripts/run.mjs TASK [arguments]`, as the scripts of package.json do.
// Requires only a system Node 20 and npm: installs missing packages, then starts the Node 26 of the
// `node` package. Plain JavaScript, because Node 20 does not strip types.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { watchNpmShell } from '../gateway/bin/npm-shell.mjs'
import { installMissing, localNode, root } from './install.mjs'

/** The command of each task: a program of node_modules/.bin, then its arguments. */
const tasks = {
  start: ['node', 'scripts/quickstart.ts'],
  test: ['vitest', 'run'],
  check: ['node', 'scripts/check.ts'],
  bench: ['node', 'gateway/bench/run.ts'],
  build: ['node', 'scripts/build.ts'],
  soak: ['node', 'scripts/soak.ts'],
  format: ['biome', 'check', '--write', '.'],
  docs: ['node', 'scripts/generate-docs.ts'],
  ui: ['node', 'scripts/build-ui.ts'],
  screenshots: ['node', 'scripts/screenshots.ts'],
}

/**
 * `npm start -- -f FILE`: options belong to the gateway's own command, which resolves paths where the user
 * is.
 */
const gatewayCommand = ['node', join(root, 'gateway', 'bin', 'tollgate.mjs')]

const [name = '', ...rest] = process.argv.slice(2)
const isGatewayCommand = name === 'start' && rest[0]?.startsWith('-') === true
const task = isGatewayCommand ? gatewayCommand : Object.hasOwn(tasks, name) ? tasks[name] : undefined
if (task === undefined) {
  fail(`unknown task "${name}", expected one of ${Object.keys(tasks).join(', ')}`)
} else {
  const problem = await installMissing()
  if (problem === undefined) {
    if (isGatewayCommand) spawnSync(localNode(), [join(root, 'scripts', 'build-ui.ts')], { stdio: 'inherit' })
    runTask(task, rest)
  } else fail(problem)
}

function runTask([program, ...args], more) {
  const bin = join(root, 'node_modules', '.bin')
  const file = program === 'node' ? localNode() : join(bin, program)
  if (!existsSync(file)) return fail(`${file} is missing; remove node_modules and run npm ci`)
  const child = spawn(file, [...args, ...more], {
    cwd: isGatewayCommand ? (process.env.INIT_CWD ?? process.cwd()) : root,
    stdio: 'inherit',
    shell: process.platform === 'win32',
    env: { ...process.env, PATH: bin + delimiter + (process.env.PATH ?? '') },
  })
  // At a terminal ^C reaches the whole process group: passing it on as well would count as a second,
  // impatient one.
  process.on('SIGINT', () => process.stdin.isTTY || child.kill('SIGINT'))
  process.on('SIGTERM', () => child.kill('SIGTERM'))
  watchNpmShell(() => child.kill('SIGTERM'))
  child.on('error', (error) => fail(`cannot run ${file}: ${error.message}`))
  child.on('exit', (code, signal) => {
    process.exitCode = signal === null ? (code ?? 1) : 1
  })
}

function fail(message) {
  process.stderr.write(`${message}\n`)
  process.exitCode = 1
}
