import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import { fixtureContext } from '../../../test/fixtures/pipeline.ts'
import { linkMemory } from '../../../test/support/linked-peers.ts'
import { member } from '../../../test/support/mock-server.ts'
import { createPlaneThreads, type PlaneThreads } from '../../../test/support/plane-threads.ts'
import { releaseLocksOf } from '../../lib/planes/lock.ts'
import { regionOf } from '../../lib/planes/memory.ts'
import { createSharedDocument, type DocumentFetch, type SharedDocument } from './shared-document.ts'

const planes = 4
const maxBytes = 64 * 1024

function setUp() {
  const memories = linkMemory(planes)
  const create = (plane: number) => {
    const memory = memories[plane]
    if (memory === undefined) throw new Error(`no data plane ${plane}`)
    return createSharedDocument('keys', maxBytes, memory)
  }
  const documents = memories.map((_, plane) => create(plane))
  const region = memories[0]?.region('identity document: keys', 0)
  if (region === undefined) throw new Error('no memory')
  return { create, region, documents }
}

function fetched(text: string, dueAt = 100): DocumentFetch {
  return { kind: 'fetched', text, dueAt }
}

function update(document: SharedDocument | undefined, fetch: () => Promise<DocumentFetch>) {
  if (document === undefined) throw new Error('no document')
  return document.update({ since: document.latest(), fetch })
}

describe('a document of several data planes', () => {
  it('is fetched once, and all of them read it', async () => {
    const { documents } = setUp()
    let fetches = 0
    const reply = Promise.withResolvers<DocumentFetch>()
    const updates = documents.map((document) =>
      update(document, () => {
        fetches += 1
        return reply.promise
      }),
    )
    reply.resolve(fetched('text'))
    await Promise.all(updates)
    expect(fetches).toBe(1)
    for (const document of documents)
      expect(document.latest()).toMatchObject({ text: 'text', dueAt: 100, failures: 0 })
    expect(documents[0]?.latest()).toBe(documents[0]?.latest())
  })

  it('is not fetched for a state that another data plane has replaced', async () => {
    const { documents } = setUp()
    const since = documents[1]?.latest()
    await update(documents[0], async () => fetched('text'))
    if (since === undefined) throw new Error('no state')
    await documents[1]?.update({ since, fetch: () => Promise.reject(new Error('fetched again')) })
    expect(documents[1]?.latest().text).toBe('text')
  })

  it('counts failures of all of them, and retains the text', async () => {
    const { documents } = setUp()
    await update(documents[0], async () => fetched('text'))
    await update(documents[1], async () => ({ kind: 'failed', retryAt: 7 }))
    await update(documents[2], async () => ({ kind: 'failed', retryAt: 9 }))
    expect(documents[3]?.latest()).toMatchObject({ text: 'text', dueAt: 100, failures: 2, retryAt: 9 })
    await update(documents[3], async () => fetched('text', 200))
    expect(documents[0]?.latest()).toMatchObject({ version: 1, dueAt: 200, failures: 0 })
  })

  it('is fetched by another data plane if the first one ends during its fetch', async () => {
    const { documents, region } = setUp()
    void update(documents[0], () => new Promise(() => {}))
    const waiting = update(documents[1], async () => fetched('second'))
    // Like the release of the locks of a data plane that has ended.
    Atomics.store(region.int32, 0, 0)
    Atomics.notify(region.int32, 0)
    await waiting
    expect(documents[2]?.latest().text).toBe('second')
  })

  it('is fetched by the replacement of a data plane that has ended during its fetch', async () => {
    const { create, documents } = setUp()
    void update(documents[0], () => new Promise(() => {}))
    await update(create(0), async () => fetched('again'))
    expect(documents[1]?.latest().text).toBe('again')
  })

  it('is replaced as a whole after a data plane has ended while it wrote', async () => {
    const { documents, region } = setUp()
    await update(documents[0], async () => fetched('whole'))
    const before = documents[1]?.latest()
    Atomics.add(region.int32, 4, 1)
    region.uint8.fill(0x2d, 48, 50)
    expect(documents[1]?.latest()).toBe(before)
    await update(documents[1], async () => ({ kind: 'failed', retryAt: 5 }))
    expect(documents.map((document) => document.latest().text)).toEqual(planesOf('whole'))
    await update(documents[2], async () => fetched('whole'))
    expect(documents.map((document) => document.latest().text)).toEqual(planesOf('whole'))
  })

  it('has a length up to the limit', async () => {
    const { documents } = setUp()
    for (const length of [0, 1, 8_192, maxBytes]) {
      await update(documents[0], async () => fetched('x'.repeat(length)))
      expect(documents[1]?.latest().text).toHaveLength(length)
    }
    await expect(update(documents[0], async () => fetched('x'.repeat(maxBytes + 9)))).rejects.toThrow()
    await update(documents[1], async () => fetched('next'))
    expect(documents[0]?.latest().text).toBe('next')
  })

  it('never has two fetches at a time, and ends with the text of the last one', async () => {
    const step = fc.record({ plane: fc.nat(planes - 1), text: fc.string(), fails: fc.boolean() })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), fc.scheduler(), async (steps, scheduler) => {
        const { documents } = setUp()
        let active = 0
        let last: string | undefined
        const updates = steps.map(async ({ plane, text, fails }) => {
          await scheduler.schedule(Promise.resolve())
          await update(documents[plane], async () => {
            active += 1
            expect(active).toBe(1)
            await scheduler.schedule(Promise.resolve())
            active -= 1
            if (fails) return { kind: 'failed', retryAt: 1 }
            last = text
            return fetched(text)
          })
        })
        await scheduler.waitFor(Promise.all(updates))
        for (const document of documents) expect(document.latest().text).toBe(last)
      }),
      { numRuns: 200 },
    )
  })
})

describe('a document of threads', () => {
  const module = new URL('../../../test/fixtures/identity-tasks.ts', import.meta.url)
  let threads: PlaneThreads | undefined
  afterEach(() => threads?.close())

  it('is fetched by one of them each time, and read whole by all', async () => {
    threads = createPlaneThreads(planes)
    const results = await threads.runAll({ module, task: 'updateDocument' }, 40)
    const fetches = results.map((result) => Number(member(result, 'fetches')))
    expect(fetches.reduce((sum, count) => sum + count)).toBe(40)
    for (const result of results) expect(String(member(result, 'text'))).toMatch(/^40 x+$/)
  })

  it('is fetched by the others if the one that fetches ends', async () => {
    threads = createPlaneThreads(2)
    await threads.run(1, { module, task: 'fetchForever' }, undefined)
    await threads.kill(1)
    const updated = threads.run(0, { module, task: 'updateDocument' }, 1)
    releaseLocksOf(regionOf(threads.buffer('identity document: keys')), 1)
    expect(await updated).toMatchObject({ fetches: 1 })
  })
})

it('a document of one data plane needs no shared memory', async () => {
  const { memory } = fixtureContext()
  const document = createSharedDocument('keys', maxBytes, memory)
  const since = document.latest()
  const fetch = async () => fetched('text')
  await Promise.all([document.update({ since, fetch }), document.update({ since, fetch })])
  expect(document.latest()).toMatchObject({ text: 'text', generation: 2 })
  await document.update({ since: document.latest(), isPermitted: () => false, fetch })
  expect(document.latest()).toMatchObject({ generation: 2 })
})

function planesOf<T>(value: T): T[] {
  return Array.from({ length: planes }, () => value)
}
