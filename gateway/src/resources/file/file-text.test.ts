import { describe, expect, it } from 'vitest'
import {
  createMemoryDatabase,
  createSteppingClock,
  type Replica,
  type ReplicaOptions,
  startFileMode,
  startHybrid,
} from '../../../test/fixtures/resources.ts'

const config = `# Models of the team.
llm:
  models:
    - name: first # the default
      provider: echo
    - name: second
      provider: openai
      params: { apiKey: "\${PROVIDER_KEY}" }
mcp:
  targets:
    - name: files
      stdio: { cmd: mcp-files }
`
const env = { PROVIDER_KEY: 'sk-of-environment', OTHER: 'other' }
const path = '/api/config/file'

const start = (options: ReplicaOptions & { mode?: 'file' | 'readOnly' } = {}) =>
  startFileMode(config, { env, allowances: {}, ...options })

type Reply = {
  mistakes: { message: string; line?: number; path: string }[]
  changes: object[]
  revision: string
}

async function read(replica: Replica) {
  const { status, body } = await replica.send('GET', path, Buffer.alloc(0))
  expect(status).toBe(200)
  return body as { text: string; revision: string; path: string; readOnly: boolean; reason?: string }
}

const put = (replica: Replica, text: string, revision?: string, query = '') =>
  replica.send('PUT', `${path}${query}`, Buffer.from(JSON.stringify({ text })), {
    'content-type': 'application/json',
    ...(revision === undefined ? {} : { 'if-match': `"${revision}"` }),
  })

const dryRun = async (replica: Replica, text: string) => {
  const { status, body } = await put(replica, text, undefined, '?dryRun=true')
  expect(status, JSON.stringify(body)).toBe(200)
  return body as Reply
}

describe('the configuration file as a text', () => {
  it('is read with its revision, and the read is logged', async () => {
    const replica = await start()
    expect(await read(replica)).toEqual({
      text: config,
      revision: expect.stringMatching(/^[0-9a-f]{20}$/),
      path: '/config/tollgate.yaml',
      readOnly: false,
    })
    expect(replica.log.lines).toContainEqual(
      expect.objectContaining({ fields: { audit: expect.objectContaining({ op: 'reveal', kind: 'file' }) } }),
    )
  })

  it('is written at its revision only', async () => {
    const replica = await start()
    const { revision } = await read(replica)
    const next = config.replace('name: first', 'name: renamed')
    expect((await put(replica, next)).status).toBe(400)
    expect((await put(replica, next, 'other')).status).toBe(412)
    expect(replica.file.text).toBe(config)
    const written = await put(replica, next, revision)
    expect(written).toMatchObject({ status: 200, body: { mistakes: [] } })
    expect(replica.file.text).toBe(next)
    expect(replica.running().llm?.models[0]?.name).toBe('renamed')
    expect((await put(replica, config, revision)).status).toBe(412)
    const { revision: now } = await read(replica)
    expect(written.headers['etag']).toBe(`"${now}"`)
    expect(JSON.stringify(replica.log.lines)).toContain('configuration file changed')
  })

  it('is not written over a concurrent edit', async () => {
    const replica = await start()
    const { revision } = await read(replica)
    replica.file.beforeWrite = () => {
      replica.file.text = `${config}# by hand\n`
    }
    expect((await put(replica, `${config}# here\n`, revision)).status).toBe(412)
    expect(replica.file.text).toContain('# by hand')
    expect(replica.host.committed).toHaveLength(1)
  })

  it('has mistakes at their lines, and is not written then', async () => {
    const replica = await start()
    const { revision } = await read(replica)
    const wrong = config.replace('provider: echo', 'provider: nobody').replace('models:', 'modles:')
    const { mistakes, changes } = await dryRun(replica, wrong)
    expect(changes).toEqual([])
    expect(mistakes).toContainEqual(expect.objectContaining({ line: 3, column: 3, path: 'llm.modles' }))
    expect(await dryRun(replica, 'llm: [\n')).toMatchObject({ mistakes: [{ line: 2, path: '' }] })
    const answer = await put(replica, wrong, revision)
    expect(answer).toMatchObject({
      status: 422,
      body: expect.stringContaining('line 3, column 3: llm.modles'),
    })
    expect(replica.file.text).toBe(config)
  })

  it('returns changes by path, without secrets', async () => {
    const replica = await start()
    const next = config
      .replace('provider: echo', 'provider: openai\n      params: { apiKey: sk-in-clear }')
      .replace('    - name: second', '    - { name: between, provider: echo }\n    - name: second')
    const { changes } = await dryRun(replica, next)
    expect(changes).toEqual([
      { path: 'llm.models[0].provider', before: 'echo', after: 'openai' },
      { path: 'llm.models[0].params', after: { apiKey: '***' } },
      { path: 'llm.models[1]', after: { name: 'between', provider: 'echo' } },
    ])
    expect(replica.file.text).toBe(config)
    const removed = await dryRun(replica, config.replace(/ {4}- name: second[\s\S]*?\}"\s*\}\n/, ''))
    expect(removed.changes).toMatchObject([{ path: 'llm.models[1]', before: { params: { apiKey: '***' } } }])
  })

  it.each([
    ['a program', 'mcp-files', 'mcp-other', 'allowStdioTargets'],
    ['a file', `"\${PROVIDER_KEY}"`, '{ file: /etc/passwd }', 'allowFilePaths'],
    [
      'a metadata address',
      'provider: echo',
      'provider: openai\n      params: { baseUrl: "http://169.254.169.254/" }',
      'allowMetadataAddresses',
    ],
    [
      'an identity of the machine',
      'provider: echo',
      'provider: azure\n      params: { azureResourceName: contoso, azureResourceType: openAI }',
      'allowMachineIdentity',
    ],
    ['a variable', 'name: first', 'name: "$OTHER"', 'allowedEnv'],
  ])('cannot introduce %s without permission', async (_, from, to, setting) => {
    const replica = await start()
    const { revision } = await read(replica)
    const answer = await put(replica, config.replace(from, to), revision)
    expect(answer).toMatchObject({ status: 403, body: expect.stringContaining(`config.storage.${setting}`) })
    expect(replica.file.text).toBe(config)
    expect(replica.host.committed).toHaveLength(1)
    // Other parts of the text may be changed beside it.
    expect((await put(replica, config.replace('first', 'renamed'), revision)).status).toBe(200)
  })

  it('cannot send an identity of the machine elsewhere', async () => {
    const azure =
      'provider: azure\n      params: { azureResourceName: contoso, azureResourceType: openAI, baseUrl: "https://a.test" }'
    const written = config.replace('provider: echo', azure)
    const replica = await startFileMode(written, { env, allowances: {} })
    const { revision } = await read(replica)
    const answer = await put(replica, written.replace('a.test', 'b.test'), revision)
    expect(answer).toMatchObject({ status: 403, body: expect.stringContaining('allowMachineIdentity') })
    expect((await put(replica, `${written}# comment\n`, revision)).status).toBe(200)
  })

  it('cannot introduce a socket', async () => {
    const replica = await start()
    const { revision } = await read(replica)
    const policies = 'llm:\n  policies: { extAuthz: { host: "unix:/var/run/docker.sock" } }'
    const answer = await put(replica, config.replace('llm:', policies), revision)
    expect(answer).toMatchObject({
      status: 403,
      body: expect.stringContaining('Unix domain sockets cannot be set through the API'),
    })
    expect(replica.file.text).toBe(config)
  })

  it('cannot change the permissions', async () => {
    const replica = await start()
    const { revision } = await read(replica)
    for (const setting of ['storage: { allowStdioTargets: true }', 'database: { url: /tmp/other.db }']) {
      const text = `config:\n  ${setting}\n${config}`
      expect(await put(replica, text, revision)).toMatchObject({ status: 403 })
    }
    const level = await put(replica, `config:\n  bindAddress: 127.0.0.1\n${config}`, revision)
    expect(level).toMatchObject({ status: 200, body: { needsRestart: true } })
  })

  it('is read-only in read-only and hybrid mode, except for dry runs', async () => {
    const clock = createSteppingClock()
    const fixed = await start({ mode: 'readOnly' })
    const hybrid = await startHybrid(createMemoryDatabase(clock).open(), clock, config, { env })
    for (const [replica, status] of [
      [fixed, 403],
      [hybrid, 409],
    ] as const) {
      const { revision, readOnly, reason } = await read(replica)
      expect(readOnly).toBe(true)
      expect(await put(replica, `${config}#\n`, revision)).toMatchObject({ status, body: reason })
      const { changes } = await dryRun(replica, config.replace('name: first', 'name: renamed'))
      expect(changes).toHaveLength(2)
      expect((await dryRun(replica, 'x: 1')).mistakes).toHaveLength(1)
    }
  })

  it.each([
    ['{"text": 1}', 422],
    ['{"text": "", "more": 1}', 422],
    ['[]', 400],
  ])('refuses the body %s', async (body, status) => {
    const replica = await start()
    const headers = { 'content-type': 'application/json', 'if-match': '"x"' }
    expect((await replica.send('PUT', path, Buffer.from(body), headers)).status).toBe(status)
    expect((await replica.send('POST', path, Buffer.from(body), headers)).status).toBe(405)
  })

  it('writes any valid text as it is, for random edits', async () => {
    const replica = await start()
    let seed = 3
    const random = (limit: number) => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
      return seed % limit
    }
    for (let run = 0; run < 40; run++) {
      const { text, revision } = await read(replica)
      const lines = text.split('\n')
      const at = random(lines.length)
      if (random(2) === 0) lines.splice(at, 0, `# comment ${run}`)
      else lines[at] = `${lines[at]} # ${run}`
      const next = lines.join('\n')
      const answer = await put(replica, next, revision)
      if (answer.status === 200) expect(replica.file.text).toBe(next)
      else expect(replica.file.text).toBe(text)
    }
  })
})
