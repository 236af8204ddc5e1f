import { describe, expect, it } from 'vitest'
import {
  createMemoryDatabase,
  createSteppingClock,
  type Replica,
  startFileMode,
  startHybrid,
} from '../../../test/fixtures/resources.ts'
import { countTurns } from '../../../test/support/count-turns.ts'

const config = `# Models of the team.
llm:
  models:
    - name: first
      provider: echo
    - name: second
      provider: openai
      params:
        model: \${MODEL}
        apiKey: \${PROVIDER_KEY}
  policies:
    cors:
      allowOrigins: ["https://a.example"]
    apiKey:
      mode: strict
      keys:
        - key: tg-secret-of-file
          metadata: { name: ada }
gateways:
  edge:
    port: 8080
routes:
  - gateways: edge
    backends: []
`
const env = { PROVIDER_KEY: 'sk-of-environment', MODEL: 'big-model' }
const one = (value: unknown) => ({ resources: [{ value }] })

type View = {
  kind: string
  id: string
  name?: string
  value: Record<string, unknown>
  revision: string | number
  origin: { kind: string; line?: number }
}

async function list(replica: Replica, path: string) {
  const { status, body } = await replica.call('GET', path)
  expect(status, JSON.stringify(body)).toBe(200)
  return body as { resources: View[]; total: number; nextCursor?: string }
}

async function read(replica: Replica, path: string): Promise<View> {
  const { status, body } = await replica.call('GET', path)
  expect(status, JSON.stringify(body)).toBe(200)
  return body as View
}

const hybrid = () => {
  const clock = createSteppingClock()
  return startHybrid(createMemoryDatabase(clock).open(), clock, config, { env })
}

describe('a list with origins', () => {
  it('contains records of the file with their line and revision', async () => {
    const replica = await startFileMode(config, { env })
    const { resources, total } = await list(replica, '/llm.model?origin=all')
    expect(total).toBe(2)
    expect(resources).toMatchObject([
      { kind: 'llm.model', value: { name: 'first', provider: 'echo' }, origin: { kind: 'file', line: 4 } },
      { value: { name: 'second', params: { model: `\${MODEL}`, apiKey: '***' } }, origin: { line: 6 } },
    ])
    expect(resources[0]?.revision).toMatch(/^[0-9a-f]{20}$/)
    expect((await replica.call('GET', '/llm.model')).body).toEqual({ resources: [] })
  })

  it('contains every kind of record', async () => {
    const replica = await startFileMode(config, { env })
    const { resources } = await list(replica, '?origin=file')
    const found = resources.map(({ kind, name, value, origin }) => [kind, name ?? value['name'], origin.line])
    expect(found.map((record) => record.join(' ')).sort()).toEqual([
      'llm.apiKey  17',
      'llm.model first 4',
      'llm.model second 6',
      'llm.policy apiKey 14',
      'llm.policy cors 12',
      'traffic.gateway edge 20',
      'traffic.route  23',
    ])
    expect(JSON.stringify(resources)).not.toMatch(/secret|of-environment/)
  })

  it('contains records of file and database, which can be selected', async () => {
    const replica = await hybrid()
    await replica.call('PUT', '/llm.model', one({ name: 'third', provider: 'echo' }))
    const names = async (query: string) =>
      (await list(replica, `/llm.model?${query}`)).resources.map(({ value }) => value['name'])
    expect(await names('origin=all')).toEqual(['first', 'second', 'third'])
    expect(await names('origin=database')).toEqual(['third'])
    expect(await names('origin=file')).toEqual(['first', 'second'])
    expect(await names('sort=-name')).toEqual(['third', 'second', 'first'])
    expect(await names('sort=provider&limit=2')).toEqual(expect.not.arrayContaining(['second']))
    expect(await names('search=ECHO&sort=name')).toEqual(['first', 'third'])
    expect((await list(replica, '/llm.model?origin=database')).resources).toMatchObject([
      { revision: 1, origin: { kind: 'database' } },
    ])
  })

  it.each(['tg-secret', 'of-environment', 'big-model', 'sk-'])(
    'does not find the secret %s',
    async (text) => {
      const replica = await startFileMode(config, { env })
      expect((await list(replica, `?search=${text}`)).total).toBe(0)
    },
  )

  it('does not sort by secrets', async () => {
    const replica = await hybrid()
    for (const [name, apiKey] of [
      ['a', 'sk-2'],
      ['b', 'sk-1'],
      ['c', 'sk-3'],
    ])
      await replica.call('PUT', '/llm.provider', one({ name, provider: 'openai', params: { apiKey } }))
    const order = async (sort: string) =>
      (await list(replica, `/llm.provider?sort=${sort}`)).resources.map(({ id }) => id)
    expect(await order('params.apiKey')).toEqual(await order('id'))
  })

  it.each([
    ['origin=disk', 'origin must be'],
    ['sort=a%20b', 'sort must be'],
    ['sort=__proto__[x]', 'sort must be'],
    [`search=${'x'.repeat(201)}`, 'search must have'],
    ['sort=name&cursor=abc', 'cursor must be'],
    ['origin=all&limit=5000', 'limit must be'],
  ])('refuses %s', async (query, message) => {
    const answer = await (await startFileMode(config, { env })).call('GET', `/llm.model?${query}`)
    expect(answer).toMatchObject({ status: 400, body: expect.stringContaining(message) })
  })

  it('has every record once over all pages, in any order', async () => {
    const replica = await hybrid()
    const models = Array.from({ length: 50 }, (_, at) => ({
      value: { name: `m${at}`, provider: at % 3 === 0 ? 'echo' : 'openai' },
    }))
    await replica.call('PUT', '/llm.model', { resources: models })
    for (const sort of ['name', '-name', 'provider', '-provider', 'id', 'updatedAt', '-params.model']) {
      const ids: string[] = []
      let cursor = ''
      do {
        const page = await list(
          replica,
          `/llm.model?sort=${sort}&limit=7${cursor && `&cursor=${encodeURIComponent(cursor)}`}`,
        )
        expect(page.total).toBe(52)
        ids.push(...page.resources.map(({ id }) => id))
        cursor = page.nextCursor ?? ''
      } while (cursor !== '')
      expect(ids).toHaveLength(52)
      expect(new Set(ids).size).toBe(52)
    }
  })

  it('yields to traffic with many records', async () => {
    const keys = Array.from(
      { length: 5_000 },
      (_, at) => `        - { key: k${at}, metadata: { name: n${at} } }`,
    )
    const text = `llm:\n  models: []\n  policies:\n    apiKey:\n      keys:\n${keys.join('\n')}\n`
    const replica = await startFileMode(text)
    let total = 0
    const turns = await countTurns(async () => {
      total = (await list(replica, '/llm.apiKey?search=n1&limit=10')).total
    })
    expect(total).toBe(1_111)
    expect(turns).toBeGreaterThan(1)
  })
})

describe('a record of the file', () => {
  it('is read by name and id, with its line', async () => {
    for (const replica of [await startFileMode(config, { env }), await hybrid()]) {
      const view = await read(replica, '/llm.model/second')
      expect(view).toMatchObject({ value: { name: 'second' }, origin: { kind: 'file', line: 6 } })
      expect(await read(replica, `/llm.model/${view.id}`)).toEqual(view)
      expect((await replica.call('GET', '/llm.model/nope')).status).toBe(404)
    }
  })

  it('is changed only at its revision', async () => {
    const replica = await startFileMode(config, { env })
    const before = await read(replica, '/llm.model/first')
    const value = { name: 'first', provider: 'echo', visibility: 'internal' }
    const put = (revision: unknown) =>
      replica.call('PUT', '/llm.model/first', { value }, { 'if-match': `"${revision}"` })
    expect(await put('0')).toMatchObject({
      status: 412,
      body: `if-match: the record is at revision ${before.revision} now`,
    })
    const answer = await put(before.revision)
    expect(answer.status).toBe(200)
    const after = await read(replica, '/llm.model/first')
    expect(answer.headers['etag']).toBe(`"${after.revision}"`)
    expect(after.revision).not.toBe(before.revision)
    expect((await put(before.revision)).status).toBe(412)
    const gone = { 'if-match': `"${before.revision}"` }
    expect((await replica.call('DELETE', '/llm.model/first', undefined, gone)).status).toBe(412)
    expect(
      (await replica.call('DELETE', '/llm.model/first', undefined, { 'if-match': `"${after.revision}"` }))
        .status,
    ).toBe(200)
  })

  it('retains secrets and references that are sent back as read', async () => {
    const replica = await startFileMode(config, { env })
    const view = await read(replica, '/llm.model/second')
    const value = { ...view.value, visibility: 'internal' }
    expect((await replica.call('PUT', '/llm.model/second', { value })).status).toBe(400)
    const answer = await replica.call('PUT', '/llm.model/second?retain=true', { ...view, value })
    expect(answer.status, JSON.stringify(answer.body)).toBe(200)
    expect(replica.file.text).toBe(
      config.replace(`apiKey: \${PROVIDER_KEY}\n`, `apiKey: \${PROVIDER_KEY}\n      visibility: internal\n`),
    )
    expect(replica.running().llm?.models[1]?.params).toEqual({
      model: 'big-model',
      apiKey: 'sk-of-environment',
    })
  })

  it('without a name is named and deleted by its id', async () => {
    const replica = await startFileMode(config, { env })
    const { resources } = await list(replica, '/traffic.route?origin=all')
    const id = resources[0]?.id
    const value = { ...resources[0]?.value, name: 'main' }
    expect((await replica.call('PUT', `/traffic.route/${id}`, { value })).status).toBe(200)
    expect(replica.running().routes).toMatchObject([{ name: 'main' }])
    expect((await replica.call('DELETE', `/traffic.route/main`)).status).toBe(200)
  })

  it('retains the references of a renamed gateway', async () => {
    const text = `gateways:\n  edge:\n    port: 8080\n    tls:\n      cert: \${CERT}\n      key: /key\n`
    const replica = await startFileMode(text, {
      env: { CERT: '/cert' },
      allowances: { allowFilePaths: true },
    })
    const view = await read(replica, '/traffic.gateway/edge')
    const value = { ...view.value, name: 'front' }
    const answer = await replica.call('PUT', '/traffic.gateway/edge?retain=true', { value })
    expect(answer.status, JSON.stringify(answer.body)).toBe(200)
    expect(replica.file.text).toContain(`cert: \${CERT}`)
    expect(replica.running().gateways).toEqual({ front: { port: 8080, tls: { cert: '/cert', key: '/key' } } })
  })

  it('is not changed in hybrid mode', async () => {
    const replica = await hybrid()
    const { value } = await read(replica, '/llm.model/first')
    expect((await replica.call('PUT', '/llm.model/first', { value })).status).toBe(409)
  })
})

it('a record of the database retains the secrets that are sent back as read', async () => {
  const replica = await hybrid()
  const stored = { name: 'p', provider: 'openai', params: { apiKey: 'sk-stored' } }
  await replica.call('PUT', '/llm.provider', one(stored))
  const view = await read(replica, '/llm.provider/p')
  expect(view.value).toMatchObject({ params: { apiKey: '***' } })
  const value = { ...view.value, defaults: { defaults: { temperature: 1 } } }
  const headers = { 'if-match': `"${view.revision}"` }
  const changed = await replica.call('PUT', '/llm.provider/p?retain=true', { ...view, value }, headers)
  expect(changed.status, JSON.stringify(changed.body)).toBe(200)
  const { body } = await replica.call('GET', '/llm.provider/p?reveal=true')
  expect(body).toMatchObject({ value: { ...stored, defaults: { defaults: { temperature: 1 } } } })
})

describe('the schema of a kind', () => {
  it('is complete for every kind', async () => {
    const replica = await startFileMode(config, { env })
    const get = (path: string) => replica.send('GET', `/api/config/schema/${path}`, Buffer.alloc(0))
    const model = await get('llm.model')
    expect(model.body).toMatchObject({ title: 'llm.model', properties: { name: {}, provider: {} } })
    const policies = (await get('llm.policy')).body as { properties: Record<string, object> }
    expect(Object.keys(policies.properties)).toContain('guardrails')
    for (const name of Object.keys(policies.properties)) {
      const { status, body } = await get(`llm.policy?name=${name}`)
      expect(status).toBe(200)
      const text = JSON.stringify(body)
      const { definitions = {} } = body as { definitions?: object }
      for (const [, used = ''] of text.matchAll(/"#\/definitions\/([^"]+)"/g))
        expect(Object.keys(definitions)).toContain(used)
    }
    expect((await get('llm.policy?name=nope')).status).toBe(404)
    expect((await get('llm.model?name=x')).status).toBe(400)
    expect(await get('apiKey')).toMatchObject({
      status: 400,
      body: 'unsupported config resource kind: apiKey',
    })
  })
})
