import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeEach, describe, expect, it } from 'vitest'
import { createDefaultFile } from '../../src/config/load/default-file.ts'
import { endAfter } from '../support/cleanup.ts'
import { freePorts } from '../support/free-port.ts'
import { runTollgate } from '../support/gateway.ts'
import { until, within } from '../support/wait.ts'

// `tollgate` without -f, as started after installation.

const entry = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
let home = ''
let file = ''

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'tollgate-home-'))
  file = join(home, '.config/tollgate/config.yaml')
  endAfter('test', () => rmSync(home, { recursive: true, force: true }))
})

const valid = { code: 0, stdout: 'Configuration is valid!\n', stderr: '' }

function launch(more: Record<string, string> = {}) {
  const env = { PATH: process.env['PATH'], HOME: home, ...more }
  const child = spawn(process.execPath, [entry], { env, cwd: home })
  const exit = new Promise((resolve) => child.once('close', resolve))
  endAfter('test', async () => {
    child.kill('SIGKILL')
    await exit
  })
  return child
}

async function withOwnPorts() {
  createDefaultFile(file)
  const [port = 0, admin = 0, stats = 0, readiness = 0] = await freePorts(4)
  const text = readFileSync(file, 'utf8')
    .replace('port: 4000', `port: ${port}`)
    .replace('adminAddr: 127.0.0.1:15000', `adminAddr: 127.0.0.1:${admin}`)
    .replace('127.0.0.1:15020', `127.0.0.1:${stats}`)
    .replace('127.0.0.1:15021', `127.0.0.1:${readiness}`)
  writeFileSync(file, text)
  return { port, admin, readiness, text }
}

async function start(readiness: number) {
  const child = launch()
  let output = ''
  const note = (chunk: Buffer) => {
    output += chunk
  }
  child.stdout.on('data', note)
  child.stderr.on('data', note)
  const exit = new Promise((resolve) => child.once('close', resolve))
  await until('ready', async () => {
    if (child.exitCode !== null) throw new Error(output)
    return (await fetch(`http://127.0.0.1:${readiness}/healthz/ready`).catch(() => undefined))?.ok
  })
  return {
    output: () => output,
    async stop() {
      child.kill('SIGTERM')
      return await within('exit', exit)
    },
  }
}

async function put(admin: number, kind: string, value: object): Promise<number> {
  const reply = await fetch(`http://127.0.0.1:${admin}/api/config/resources/${kind}`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ resources: [{ value }] }),
  })
  return reply.status
}

async function ask(port: number): Promise<number> {
  const reply = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: 'Bearer tg-first-key', 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'echo', messages: [{ role: 'user', content: 'Hello' }] }),
  })
  return reply.status
}

describe('without -f', () => {
  it('creates a file and a database that retain changes of the API, and reuses both', async () => {
    const { port, admin, readiness, text } = await withOwnPorts()
    const first = await start(readiness)
    expect(await ask(port)).toBe(401)
    expect(await put(admin, 'llm.model', { name: 'echo', provider: 'echo' })).toBe(200)
    expect(await put(admin, 'llm.apiKey', { key: 'tg-first-key' })).toBe(200)
    expect(await ask(port)).toBe(200)
    expect(await first.stop()).toBe(0)
    expect(first.output()).toContain(JSON.stringify({ file }).slice(1, -1))
    expect(statSync(join(home, '.config/tollgate/tollgate.db')).mode & 0o777).toBe(0o600)

    await start(readiness)
    expect(await ask(port)).toBe(200)
    expect(readFileSync(file, 'utf8')).toBe(text)
  })

  it('reports the path of the file that it has created', async () => {
    const child = launch()
    let said = ''
    child.stderr.on('data', (chunk) => {
      said += chunk
    })
    // Before it comes to the usual ports, which others may need.
    await until('the name of the file', () => said.includes(`created the configuration file ${file}\n`))
    child.kill('SIGKILL')
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(await runTollgate(['--validate-only'], { env: { HOME: home } })).toEqual(valid)
  })

  it('makes it under XDG_CONFIG_HOME where that is set', async () => {
    const settings = join(home, 'settings')
    const child = launch({ XDG_CONFIG_HOME: settings })
    await until('the file', () => existsSync(join(settings, 'tollgate/config.yaml')))
    child.kill('SIGKILL')
    expect(existsSync(join(home, '.config'))).toBe(false)
  })

  it('ends with a reason where the file cannot be made', async () => {
    writeFileSync(join(home, '.config'), 'a file in the way')
    const { code, stdout, stderr } = await runTollgate([], { env: { HOME: home } })
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toBe(
      `cannot create the configuration file ${file}: a part of its path is not a folder; name one with -f FILE\n`,
    )
  })

  it('checks the file that is there, and makes none to check', async () => {
    const missing = await runTollgate(['--validate-only'], { env: { HOME: home } })
    expect(missing).toEqual({
      code: 1,
      stdout: '',
      stderr: `no configuration file: ${file} does not exist; name one with -f FILE\n`,
    })
    expect(readdirSync(home)).toEqual([])
    createDefaultFile(file)
    writeFileSync(file, `${readFileSync(file, 'utf8')}\nlmm: {}\n`)
    const wrong = await runTollgate(['--validate-only'], { env: { HOME: home } })
    expect(wrong.code).toBe(1)
    expect(wrong.stderr).toContain(`${file}:`)
    expect(wrong.stderr).toContain('lmm')
  })
})
