import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
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
  return { file, env, child, exit, output: () => output }
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

it('ends when npm is told to, whatever shell npm runs it in', async () => {
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
