import { describe, expect, it } from 'vitest'
import {
  createMemoryDatabase,
  createSteppingClock,
  defaultConfig,
  type Replica,
  startHybrid,
} from '../../test/fixtures/resources.ts'
import { isJsonObject } from '../lib/json/json.ts'
import type { Envelope } from './change/change.ts'

async function filled(): Promise<Replica> {
  const clock = createSteppingClock()
  const replica = await startHybrid(createMemoryDatabase(clock).open(), clock, defaultConfig)
  const keys = ['red', 'blue', 'red'].map((group, index) => ({
    value: { key: `k-${index}`, metadata: { name: `n-${index}`, group, level: index } },
  }))
  await replica.call('PUT', '/llm.apiKey', { resources: keys })
  const models = ['a', 'b', 'c', 'd'].map((name) => ({ value: { name, provider: 'echo' } }))
  await replica.call('PUT', '/llm.model', { resources: models })
  await replica.call('PUT', '/llm.policy/cors', { value: { allowOrigins: ['*'] } })
  return replica
}

type ListBody = { resources: Envelope[]; nextCursor?: string }

const list = async (replica: Replica, path: string) => {
  const { status, body } = await replica.call('GET', path)
  expect({ status, body }).toMatchObject({ status: 200 })
  return body as ListBody
}

describe('filters', () => {
  it('match a masked member only if the response reveals it', async () => {
    const replica = await filled()
    const value = { key: 'k-9', metadata: { name: 'n-9', 'api-token': 's3cret' } }
    await replica.call('PUT', '/llm.apiKey', { resources: [{ value }] })
    const found = async (query: string) => (await list(replica, `/llm.apiKey?${query}`)).resources.length
    expect(await found('metadata.api-token=s3cret')).toBe(0)
    expect(await found('metadata.api-token=s3cret&reveal=true')).toBe(1)
  })
})

describe('pages', () => {
  it.each(['/llm.model', ''])('contain each record of "%s" once, in the order of the list', async (path) => {
    const replica = await filled()
    const whole = (await list(replica, path)).resources
    for (const limit of [1, 2, 3, whole.length]) {
      const found: Envelope[] = []
      let cursor: string | undefined
      let pages = 0
      do {
        const next: string = cursor === undefined ? '' : `&cursor=${cursor}`
        const page: ListBody = await list(replica, `${path}?limit=${limit}${next}`)
        expect(page.resources.length).toBeLessThanOrEqual(limit)
        found.push(...page.resources)
        cursor = page.nextCursor
        pages += 1
      } while (cursor !== undefined)
      expect(found).toEqual(whole)
      expect(pages).toBe(Math.ceil(whole.length / limit))
    }
  })

  it('continue after a record that was removed meanwhile', async () => {
    const replica = await filled()
    const whole = (await list(replica, '/llm.model')).resources.map(({ id }) => id)
    const { nextCursor } = await list(replica, '/llm.model?limit=2')
    await replica.call('DELETE', `/llm.model/${whole[1]}`)
    const rest = await list(replica, `/llm.model?cursor=${nextCursor}`)
    expect(rest.resources.map(({ id }) => id)).toEqual(whole.slice(2))
  })
})

describe('filters', () => {
  it.each([
    ['/llm.model?name=b', ['b']],
    ['/llm.model?name=none', []],
    ['?name=cors', ['cors']],
    ['/llm.apiKey?name=n-1', ['n-1']],
    ['/llm.apiKey?metadata.group=red', ['n-0', 'n-2']],
    ['/llm.apiKey?metadata.group=red&metadata.level=2', ['n-2']],
    ['/llm.apiKey?metadata.group=red&name=n-1', []],
    ['/llm.apiKey?metadata.__proto__=x', []],
    ['?metadata.group=blue', ['n-1']],
  ])('%s', async (path, names) => {
    const { resources } = await list(await filled(), path)
    const found = resources.map(({ name, value }) => {
      const { metadata } = isJsonObject(value) ? value : {}
      return name ?? (isJsonObject(metadata) ? metadata['name'] : isJsonObject(value) && value['name'])
    })
    expect(found.sort()).toEqual(names)
  })

  it('combine with pages', async () => {
    const replica = await filled()
    const { resources, nextCursor } = await list(replica, '/llm.apiKey?metadata.group=red&limit=1')
    const rest = await list(replica, `/llm.apiKey?metadata.group=red&limit=1&cursor=${nextCursor}`)
    expect(rest.nextCursor).toBeUndefined()
    expect(new Set([...resources, ...rest.resources].map(({ id }) => id)).size).toBe(2)
  })
})

it.each([
  ['GET', '?nme=x', 'unknown query parameter nme: known are limit, cursor, name, metadata.<field>, reveal'],
  ['GET', '/llm.model?metadata.=x', 'unknown query parameter metadata.'],
  ['GET', '/llm.model?dryRun=true', 'unknown query parameter dryRun'],
  ['GET', '/llm.model/a?limit=1', 'unknown query parameter limit: known are reveal'],
  ['GET', '/llm.model?limit=0', 'limit must be a number from 1 to 1000'],
  ['GET', '/llm.model?limit=1001', 'limit must be a number from 1 to 1000'],
  ['GET', '/llm.model?limit=x', 'limit must be a number from 1 to 1000'],
  ['GET', '/llm.model?cursor=x', 'cursor must be the nextCursor of an answer'],
  ['GET', '/llm.model?reveal=yes', 'reveal must be true or false'],
  ['GET', '/llm.model?name=a&name=b', 'name is in the query more than once'],
  ['PUT', '/llm.model?dryrun=true', 'unknown query parameter dryrun: known are dryRun, reveal'],
  ['DELETE', '/llm.model/a?dry_run=true', 'unknown query parameter dry_run: known are dryRun'],
])('%s %s is refused', async (method, path, message) => {
  const replica = await filled()
  const body = method === 'PUT' ? { resources: [] } : undefined
  const answer = await replica.call(method, path, body)
  expect(answer.status).toBe(400)
  expect(String(answer.body)).toContain(message)
  expect((await list(replica, '/llm.model?name=a')).resources).toHaveLength(1)
})
