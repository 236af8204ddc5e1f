import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freePorts } from '../support/free-port.ts'
import { until, within } from '../support/wait.ts'

// The published package from a user's view: packed, installed into an empty folder without a network, and run
// by npx.

const root = fileURLToPath(new URL('../../..', import.meta.url))
const { version } = JSON.parse(readFileSync(join(root, 'gateway/package.json'), 'utf8'))
const work = mkdtempSync(join(tmpdir(), 'tollgate-package-'))
const installed = join(work, 'empty')
const key = 'tg-package-key'

beforeAll(() => {
  mkdirSync(installed)
  const built = execFileSync(process.execPath, ['scripts/build.ts', '--out', work], {
    cwd: root,
    encoding: 'utf8',
  })
  writeFileSync(join(installed, 'package.json'), '{ "private": true }')
  const args = ['install', '--offline', '--no-audit', '--no-fund', built.trim()]
  execFileSync('npm', args, { cwd: installed, encoding: 'utf8', stdio: 'pipe' })
}, 120_000)

afterAll(() => rmSync(work, { recursive: true, force: true }))

function tollgate(...args: string[]) {
  const { stdout, stderr, status } = spawnSync('npx', ['--no-install', 'tollgate', ...args], {
    cwd: installed,
    encoding: 'utf8',
  })
  // npx may have remarks of its own about the settings of the machine.
  return { stdout, stderr: stderr.replace(/^npm warn .*\n/gm, ''), status }
}

function writeConfig(name: string, config: object): string {
  const file = join(installed, name)
  writeFileSync(file, JSON.stringify(config))
  return file
}

/** The system's Node, outside this checkout, when it is one that the gateway cannot run on. */
function oldNode(): string | undefined {
  const candidates = (process.env['PATH'] ?? '')
    .split(delimiter)
    .filter((folder) => !folder.startsWith(root))
    .map((folder) => join(folder, 'node'))
  return candidates.find((node) => {
    if (!existsSync(node)) return false
    const [, major = '99'] = /^v(\d+)/.exec(execFileSync(node, ['--version'], { encoding: 'utf8' })) ?? []
    return Number(major) < 24
  })
}

describe('the package', () => {
  it('brings its libraries inside, with their licences', () => {
    const folder = join(installed, 'node_modules/tollgate')
    for (const file of [
      'README.md',
      'LICENSE',
      'bin/tollgate.mjs',
      'dist/tollgate.js',
      'dist/tollgate.js.map',
      'dist/sqlite-thread.js',
      'dist/ledger-writer.js',
      'dist/config-worker.js',
      'dist/config.schema.json',
      'dist/data-plane.js',
      'dist/ui/index.html',
    ])
      expect(existsSync(join(folder, file)), file).toBe(true)
    expect(existsSync(join(folder, 'src'))).toBe(false)
    expect(existsSync(join(installed, 'node_modules/undici'))).toBe(false)
    const licences = readFileSync(join(folder, 'dist/third-party-licenses.txt'), 'utf8')
    for (const name of ['undici', 'react-dom', '@fontsource-variable/geist', 'tailwindcss'])
      expect(licences).toMatch(new RegExp(`^${name} \\d`, 'm'))
  })

  it('brings a bill of materials of every library inside, with package URL, licence and hash', () => {
    const folder = join(installed, 'node_modules/tollgate/dist')
    const bill = JSON.parse(readFileSync(join(folder, 'sbom.cdx.json'), 'utf8'))
    expect(bill).toMatchObject({
      bomFormat: 'CycloneDX',
      specVersion: '1.6',
      metadata: { component: { version } },
    })
    const licensed = readFileSync(join(folder, 'third-party-licenses.txt'), 'utf8').match(
      /^\S+ \d\S* \(.+\)$/gm,
    )
    const listed = bill.components.map(
      (component: { name: string; version: string; licenses: [{ expression: string }] }) => {
        const [{ expression }] = component.licenses
        return `${component.name} ${component.version} (${expression})`
      },
    )
    expect(listed).toEqual(licensed)
    for (const { purl, hashes } of bill.components) {
      expect(purl).toMatch(/^pkg:npm\/(%40[\w-]+\/)?[\w.-]+@\d/)
      expect(hashes).toEqual([{ alg: 'SHA-512', content: expect.stringMatching(/^[0-9a-f]{128}$/) }])
    }
  })

  it('prints its version', () => {
    expect(tollgate('--version')).toEqual({ stdout: `tollgate ${version}\n`, stderr: '', status: 0 })
  })

  it('validates a file', () => {
    const file = writeConfig('good.yaml', { llm: { models: [{ name: 'echo', provider: 'echo' }] } })
    expect(tollgate('--validate-only', '-f', file)).toEqual({
      stdout: 'Configuration is valid!\n',
      stderr: '',
      status: 0,
    })
  })

  it('names the invalid field of a file', () => {
    const file = writeConfig('bad.yaml', { llm: { model: [] } })
    const run = tollgate('--validate-only', '-f', file)
    expect(run).toMatchObject({ stdout: '', status: 1 })
    expect(run.stderr).toContain('bad.yaml:1:')
    expect(run.stderr).toContain('models')
  })

  it.each([1, 2])('serves requests with %d worker threads and ends on SIGTERM', async (workerThreads) => {
    const [port, adminPort, statsPort, readyPort] = await freePorts(4)
    const file = writeConfig('run.yaml', {
      config: {
        workerThreads,
        bindAddress: '127.0.0.1',
        adminAddr: `127.0.0.1:${adminPort}`,
        statsAddr: `127.0.0.1:${statsPort}`,
        readinessAddr: `127.0.0.1:${readyPort}`,
      },
      llm: {
        port,
        models: [{ name: 'echo', provider: 'echo' }],
        policies: {
          apiKey: { keys: [{ key }] },
          // Loads the client of gRPC services.
          remoteRateLimit: {
            host: '127.0.0.1:1',
            domain: 'none',
            failureMode: 'failOpen',
            descriptors: [{ entries: [{ key: 'user', value: '"alice"' }] }],
          },
        },
      },
    })
    // The command that npx would find: npx itself does not pass a signal on.
    const child = spawn(join(installed, 'node_modules/.bin/tollgate'), ['-f', file], { cwd: installed })
    const exit = once(child, 'exit')
    try {
      const ready = `http://127.0.0.1:${readyPort}/healthz/ready`
      await until('ready', async () => (await fetch(ready).catch(() => undefined))?.ok)
      const reply = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'echo', messages: [{ role: 'user', content: 'packed' }] }),
      })
      expect(reply.status).toBe(200)
      expect(await reply.json()).toMatchObject({
        choices: [{ message: { content: expect.stringContaining('packed') } }],
      })
    } finally {
      child.kill('SIGTERM')
    }
    expect(await within('exit', exit)).toEqual([0, null])
  })

  it('loads a large file on the config worker', async () => {
    const [port, adminPort, statsPort, readyPort] = await freePorts(4)
    const file = writeConfig('large.yaml', {
      config: {
        bindAddress: '127.0.0.1',
        adminAddr: `127.0.0.1:${adminPort}`,
        statsAddr: `127.0.0.1:${statsPort}`,
        readinessAddr: `127.0.0.1:${readyPort}`,
      },
      llm: {
        port,
        models: Array.from({ length: 1_000 }, (_, index) => ({ name: `echo-${index}`, provider: 'echo' })),
      },
    })
    expect(readFileSync(file, 'utf8').length).toBeGreaterThan(32 * 1024)
    const child = spawn(join(installed, 'node_modules/.bin/tollgate'), ['-f', file], { cwd: installed })
    const exit = once(child, 'exit')
    try {
      const ready = `http://127.0.0.1:${readyPort}/healthz/ready`
      await until('ready', async () => (await fetch(ready).catch(() => undefined))?.ok)
    } finally {
      child.kill('SIGTERM')
    }
    expect(await within('exit', exit)).toEqual([0, null])
  })

  it('stores config resources in SQLite', async () => {
    const [port, adminPort, statsPort, readyPort] = await freePorts(4)
    const file = writeConfig('sqlite.yaml', {
      config: {
        bindAddress: '127.0.0.1',
        adminAddr: `127.0.0.1:${adminPort}`,
        statsAddr: `127.0.0.1:${statsPort}`,
        readinessAddr: `127.0.0.1:${readyPort}`,
        storage: { mode: 'hybrid' },
        database: { url: `sqlite://${join(installed, 'resources.db')}` },
      },
      llm: { port, models: [{ name: 'echo', provider: 'echo' }], policies: { apiKey: { keys: [] } } },
    })
    const resources = `http://127.0.0.1:${adminPort}/api/config/resources/llm.apiKey`
    const child = spawn(join(installed, 'node_modules/.bin/tollgate'), ['-f', file], { cwd: installed })
    const exit = once(child, 'exit')
    try {
      const ready = `http://127.0.0.1:${readyPort}/healthz/ready`
      await until('ready', async () => (await fetch(ready).catch(() => undefined))?.ok)
      const stored = await fetch(resources, {
        method: 'PUT',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ resources: [{ value: { key } }] }),
      })
      expect(stored.status).toBe(200)
      expect(await (await fetch(resources)).json()).toMatchObject({ resources: [{ revision: 1 }] })
    } finally {
      child.kill('SIGTERM')
    }
    expect(await within('exit', exit)).toEqual([0, null])
    expect(existsSync(join(installed, 'resources.db'))).toBe(true)
  })
})

describe('a Node that is too old', () => {
  const tooOld = {
    stdout: '',
    stderr: expect.stringMatching(/^tollgate needs Node\.js 24\.15 or newer; this is \d+\S+\n$/),
  }

  it('is refused with one line', () => {
    const preload = join(work, 'pretend.mjs')
    writeFileSync(
      preload,
      "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '24.14.9' } })",
    )
    const bin = join(installed, 'node_modules/tollgate/bin/tollgate.mjs')
    const args = ['--import', pathToFileURL(preload).href, bin, '--version']
    expect(spawnSync(process.execPath, args, { encoding: 'utf8' })).toMatchObject({ ...tooOld, status: 1 })
  })

  it.skipIf(oldNode() === undefined)('is refused by the real version', () => {
    const bin = join(installed, 'node_modules/tollgate/bin/tollgate.mjs')
    const run = spawnSync(oldNode() ?? '', [bin, '--version'], { encoding: 'utf8' })
    expect(run).toMatchObject({ ...tooOld, status: 1 })
  })

  it.skipIf(oldNode() === undefined)('hands over to the Node of a checkout', () => {
    const run = spawnSync(oldNode() ?? '', ['gateway/bin/tollgate.mjs', '--version'], {
      cwd: root,
      encoding: 'utf8',
    })
    expect(run).toMatchObject({ stdout: `tollgate ${version}\n`, stderr: '', status: 0 })
  })
})
