import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { endAfter } from '../support/cleanup.ts'
import { freePorts } from '../support/free-port.ts'
import { until, within } from '../support/wait.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))

/** `npm start` on the quickstart's file, with ports of its own. */
async function start(
  [program, ...args]: [string, ...string[]] = [process.execPath, 'scripts/run.mjs', 'start'],
) {
  const ports = await freePorts(5)
  const [port, adminPort, statsPort, readinessPort, mcpPort] = ports
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-quickstart-'))
  const file = join(folder, 'quickstart.yaml')
  const text = readFileSync(join(root, 'examples/quickstart.yaml'), 'utf8')
    .replace('port: 4000', `port: ${port}`)
    .replace('port: 3000', `port: ${mcpPort}`)
    .replace('127.0.0.1:15020', `127.0.0.1:${statsPort}\n  adminAddr: 127.0.0.1:${adminPort}`)
    .replace('127.0.0.1:15021', `127.0.0.1:${readinessPort}`)
  writeFileSync(file, text)
  const env = { ...process.env, TOLLGATE_DATA: folder }
  const child = spawn(program, [...args, file], { cwd: root, env })
  let output = ''
  child.stdout.on('data', (chunk) => {
    output += chunk
  })
  child.stderr.on('data', (chunk) => {
    output += chunk
  })
  const exit = once(child, 'exit')
  endAfter('test', async () => {
    child.kill('SIGTERM')
    await within('exit of npm start', exit)
    rmSync(folder, { recursive: true })
  })
  return { file, folder, env, child, exit, output: () => output }
}

it('prints addresses and curl lines that work when pasted', async () => {
  const { output, child, exit } = await start()
  await until('the banner', () => output().includes('Tollgate is running'))
  const [plain = '', stream = '', begin = '', call = '', create = '', use = '', remove = '', ...others] =
    output().match(/^ *(\w+=\$\()?curl .*$/gm) ?? []
  expect(others).toEqual([])

  const answer = spawnSync('bash', ['-c', plain], { encoding: 'utf8' }).stdout
  expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
  expect(answer).toMatch(/^x-ratelimit-remaining: \d+\r$/m)
  expect(answer).toContain('Hello, Tollgate')

  const events = spawnSync('bash', ['-c', stream], { encoding: 'utf8' }).stdout
  expect(events).toMatch(/^data: \{/)
  expect(events).toMatch(/data: \[DONE\]\n\n$/)

  const called = spawnSync('bash', ['-c', `${begin}\n${call}`], { encoding: 'utf8' }).stdout
  expect(called).toContain('"structuredContent":{"sum":5}')

  const withKey = spawnSync('bash', ['-c', `${create}\n${use}\n${remove}\n${use}`], {
    encoding: 'utf8',
  }).stdout
  expect(withKey).toMatch(/^HTTP\/1\.1 200 OK\r\n[\s\S]*"Configuration resource deleted successfully"/)
  expect(withKey).toMatch(/successfully"\}HTTP\/1\.1 401 Unauthorized\r\n[\s\S]*invalid credentials/)

  const [, metrics = ''] = /Metrics +(\S+)/.exec(output()) ?? []
  expect(await (await fetch(metrics)).text()).toContain('tollgate_requests_total{')

  child.kill('SIGTERM')
  expect(await within('exit', exit)).toEqual([0, null])
})

it('generates its key at the first start and keeps it for its user', async () => {
  const { output, folder, file, env, child, exit } = await start()
  await until('the banner', () => output().includes('Tollgate is running'))
  const keyFile = join(folder, 'quickstart.key')
  const key = readFileSync(keyFile, 'utf8').trim()
  expect(key).toMatch(/^tg-[A-Za-z0-9_-]{32}$/)
  expect(statSync(keyFile).mode & 0o777).toBe(0o600)
  expect(output()).toContain(`authorization: Bearer ${key}'`)
  child.kill('SIGTERM')
  await within('exit', exit)

  const again = spawn(process.execPath, ['scripts/run.mjs', 'start', file], { cwd: root, env })
  const ended = once(again, 'exit')
  endAfter('test', () => void again.kill('SIGKILL'))
  let second = ''
  again.stdout.on('data', (chunk) => {
    second += chunk
  })
  await until('the second banner', () => second.includes('Tollgate is running'))
  expect(second).toContain(`authorization: Bearer ${key}'`)
  again.kill('SIGTERM')
  await within('exit', ended)

  writeFileSync(keyFile, 'short\n')
  const refused = spawnSync(process.execPath, ['scripts/run.mjs', 'start', file], {
    cwd: root,
    env,
    encoding: 'utf8',
  })
  expect(refused.status).toBe(1)
  expect(refused.stderr).toContain('quickstart.key is not a key of the quickstart; remove it')
})

it('ends with npm, in any shell that npm uses', async () => {
  const { output, child } = await start(['npm', 'start', '--'])
  await until('the banner', () => output().includes('Tollgate is running'))
  const [, metrics = ''] = /Metrics +(\S+)/.exec(output()) ?? []
  child.kill('SIGTERM')
  const isServing = () =>
    fetch(metrics).then(
      () => true,
      () => false,
    )
  await until('the end of the gateway', async () => !(await isServing()))
})

it("shows the gateway's own error when a port is taken", async () => {
  const first = await start()
  await until('the banner', () => first.output().includes('Tollgate is running'))
  const { status, stderr, stdout } = spawnSync(process.execPath, ['scripts/run.mjs', 'start', first.file], {
    cwd: root,
    env: first.env,
    encoding: 'utf8',
  })
  expect(status).toBe(1)
  expect(stderr).toMatch(/^cannot listen on 127\.0\.0\.1:\d+: the port is in use/)
  expect(stdout).not.toContain('Tollgate is running')
})

/** A file with nothing but a model, on ports of its own. */
async function writeModelOnly() {
  const [port, admin, stats, readiness] = await freePorts(4)
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-quickstart-'))
  endAfter('test', () => rmSync(folder, { recursive: true }))
  const [adminAddr, statsAddr, readinessAddr] = [admin, stats, readiness].map((port) => `127.0.0.1:${port}`)
  const config = { bindAddress: '127.0.0.1', adminAddr, statsAddr, readinessAddr }
  writeFileSync(
    join(folder, 'model.yaml'),
    JSON.stringify({ config, llm: { port, models: [{ name: 'echo', provider: 'echo' }] } }),
  )
  return { folder, readiness: `http://${readinessAddr}/healthz/ready` }
}

const isServing = (url: string) =>
  fetch(url).then(
    ({ ok }) => ok,
    () => false,
  )

it.each([
  ['npm start', 'npm', ['--prefix', root, 'start', '--', '-f', 'model.yaml']],
  ['run.mjs start', process.execPath, [join(root, 'scripts/run.mjs'), 'start', '--file=model.yaml']],
  ['npx tollgate', 'npx', ['--prefix', root, '--no-install', 'tollgate', '-f', 'model.yaml']],
])('%s -f runs a file of any shape and ends on SIGTERM', async (_name, program, args) => {
  const { folder, readiness } = await writeModelOnly()
  // npm sets INIT_CWD itself, to the folder it was called in.
  const { INIT_CWD: _, ...env } = process.env
  const child = spawn(program, args, { cwd: folder, env })
  const exit = once(child, 'exit')
  endAfter('test', () => void child.kill('SIGKILL'))
  await until('readiness', () => isServing(readiness))
  child.kill('SIGTERM')
  await within('exit', exit)
  await until('the end of the gateway', async () => !(await isServing(readiness)))
})

it('refuses a file without the sections of the quickstart before anything is started', async () => {
  const { folder, readiness } = await writeModelOnly()
  const file = join(folder, 'model.yaml')
  const { status, stderr } = spawnSync(process.execPath, ['scripts/run.mjs', 'start', file], {
    cwd: root,
    encoding: 'utf8',
  })
  expect(status).toBe(1)
  expect(stderr).toBe(
    `${file}: is not a variant of examples/quickstart.yaml; run it with: npm start -- -f ${file}\n`,
  )
  expect(await isServing(readiness)).toBe(false)
})
