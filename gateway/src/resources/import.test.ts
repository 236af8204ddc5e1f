import { describe, expect, it } from 'vitest'
import {
  createMemoryDatabase,
  createSteppingClock,
  type Replica,
  startFileMode,
  startHybrid,
} from '../../test/fixtures/resources.ts'
import type { Envelope } from './change/change.ts'
import { namedId } from './change/identity.ts'

const config = `
llm:
  models: []
mcp:
  targets: []
`

function hybrid(): Promise<Replica> {
  const clock = createSteppingClock()
  return startHybrid(createMemoryDatabase(clock).open(), clock, config)
}

const one = (value: object) => ({ resources: [{ value }] })
const listed = async (replica: Replica, query: string) =>
  (await replica.call('GET', query)).body as { resources: Envelope[] }
const plain = ({ resources }: { resources: Envelope[] }) =>
  resources.map(({ kind, id, name, value }) => ({ kind, id, name, value }))

async function filled(): Promise<Replica> {
  const replica = await hybrid()
  const calls: [string, object][] = [
    ['/llm.policy/apiKey', { value: { mode: 'strict' } }],
    ['/llm.apiKey', one({ key: 'k-1', metadata: { name: 'ada' } })],
    ['/llm.apiKey', one({ key: 'k-2' })],
    ['/llm.provider', one({ name: 'p', provider: 'openai', params: { apiKey: 's' } })],
    ['/llm.model', one({ name: 'a', provider: { reference: 'p' } })],
    ['/llm.model/a', { value: { name: 'renamed', provider: { reference: 'p' } } }],
    ['/mcp.settings', one({ prefixMode: 'always' })],
    ['/modelCatalog', one({ custom: { providers: {} } })],
  ]
  for (const [path, body] of calls) {
    const { status, body: answer } = await replica.call('PUT', path, body)
    expect({ path, status, answer }).toMatchObject({ status: 200 })
  }
  return replica
}

describe('an export', () => {
  it('does not replace a record of another kind with the same id', async () => {
    const replica = await filled()
    const [policy] = (await listed(replica, '/llm.policy')).resources
    const before = (await listed(replica, '')).resources.length
    const target = {
      kind: 'mcp.target',
      id: policy?.id,
      value: { name: 't', mcp: { host: 'http://a.test' } },
    }
    const { status } = await replica.call('PUT', '?import=true', { resources: [target] })
    expect(status).toBe(200)
    expect((await listed(replica, '')).resources).toHaveLength(before + 1)
    expect((await listed(replica, '/llm.policy')).resources).toEqual([policy])
    expect((await replica.call('DELETE', `/mcp.target/${policy?.id}`)).status).toBe(200)
    expect((await listed(replica, '/llm.policy')).resources).toEqual([policy])
  })

  it('is imported by another gateway with its ids, repeatedly', async () => {
    const source = await filled()
    const exported = await listed(source, '?reveal=true')
    const target = await hybrid()
    for (const _ of ['first', 'again']) {
      const { status, body } = await target.call('PUT', '?import=true', exported)
      expect({ status, body }).toMatchObject({ status: 200 })
      expect(plain(await listed(target, '?reveal=true'))).toEqual(plain(exported))
    }
    expect(target.running().llm?.models).toEqual(source.running().llm?.models)
    expect(target.running().llm?.policies?.apiKey?.keys).toHaveLength(2)
    expect((await target.call('GET', '/llm.model/renamed')).body).toMatchObject({
      id: namedId('llm.model', 'a'),
    })
  })

  it('is not imported if its secrets are masked', async () => {
    const exported = await listed(await filled(), '')
    const target = await hybrid()
    const answer = await target.call('PUT', '?import=true', exported)
    expect(answer).toMatchObject({ status: 400, body: expect.stringContaining('is masked') })
    expect((await listed(target, '')).resources).toEqual([])
  })

  it('is only validated in a dry run', async () => {
    const exported = await listed(await filled(), '?reveal=true')
    const target = await hybrid()
    expect((await target.call('PUT', '?import=true&dryRun=true', exported)).status).toBe(200)
    expect((await listed(target, '')).resources).toEqual([])
  })
})

const id = '6f0c0d52-6b0c-4b52-8f38-0d3a1d4f2a10'
const other = '7f0c0d52-6b0c-4b52-8f38-0d3a1d4f2a10'
const model = (name: string) => ({ name, provider: 'echo' })

it.each([
  ['no id', [{ kind: 'llm.model', value: model('x') }], 400, 'needs its id'],
  ['an id that is no UUID', [{ kind: 'llm.model', id: 'x', value: model('x') }], 400, 'needs its id'],
  ['no kind', [{ id, value: model('x') }], 400, 'needs its kind'],
  ['an unknown kind', [{ kind: 'llm.none', id, value: {} }], 400, 'needs its kind'],
  ['no value', [{ kind: 'llm.model', id }], 422, 'needs a value'],
  [
    'an unknown member',
    [{ kind: 'llm.model', id, value: model('x'), extra: 1 }],
    400,
    'unknown member extra',
  ],
  [
    'an id twice',
    ['x', 'y'].map((name) => ({ kind: 'llm.model', id, value: model(name) })),
    400,
    'more than once',
  ],
  [
    'a name twice',
    [id, other].map((own) => ({ kind: 'llm.model', id: own, value: model('x') })),
    400,
    'more than once',
  ],
  ['the name of another record', [{ kind: 'llm.model', id, value: model('taken') }], 409, 'exists already'],
  [
    'another id of a policy',
    [{ kind: 'llm.policy', id, name: 'cors', value: { allowOrigins: [] } }],
    400,
    'must be',
  ],
  [
    'the metadata id of another key',
    [{ kind: 'llm.apiKey', id, value: { key: 'k', metadata: { id: other } } }],
    400,
    'metadata.id',
  ],
  ['keys without a policy', [{ kind: 'llm.apiKey', id, value: { key: 'k' } }], 409, 'llm.policies.apiKey'],
  [
    'a program',
    [{ kind: 'mcp.target', id, value: { name: 't', stdio: { cmd: 'x' } } }],
    403,
    'allowStdioTargets',
  ],
  ['what cannot run', [{ kind: 'llm.model', id, value: { name: 'x', provider: 'nobody' } }], 422, 'nobody'],
])('an import with %s is refused as a whole', async (_, resources, status, message) => {
  const replica = await hybrid()
  await replica.call('PUT', '/llm.model', one(model('taken')))
  const good = { kind: 'llm.model', id: namedId('llm.model', 'good'), value: model('good') }
  const answer = await replica.call('PUT', '?import=true', { resources: [good, ...resources] })
  expect(answer).toMatchObject({ status, body: expect.stringContaining(message) })
  expect((await listed(replica, '')).resources).toHaveLength(1)
})

it('an id in addition to value is refused on create', async () => {
  const replica = await hybrid()
  const answer = await replica.call('PUT', '/llm.model', { resources: [{ id, value: model('x') }] })
  expect(answer.status).toBe(400)
  expect((await replica.call('PUT', '?import=false', { resources: [] })).status).toBe(400)
})

it('an import is refused in file mode', async () => {
  const replica = await startFileMode(config)
  expect(await replica.call('PUT', '?import=true', { resources: [] })).toMatchObject({
    status: 409,
    body: 'an import needs config.storage.mode: hybrid',
  })
})
