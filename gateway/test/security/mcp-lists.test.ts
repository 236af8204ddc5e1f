import { describe, expect, it } from 'vitest'
import { federate } from '../../src/backends/mcp/federation.ts'
import { compileStreamableHttp } from '../../src/backends/mcp/targets/streamable-http.ts'
import type { Permissions, TargetSession } from '../../src/backends/mcp/targets/target.ts'
import type { JsonObject } from '../../src/lib/json.ts'
import type { Send } from '../../src/net/send.ts'
import { type Collected, collect, fixtureContext, introduction, request } from '../fixtures/mcp.ts'
import { member } from '../support/mock-server.ts'
import { until } from '../support/wait.ts'

// Targets whose lists are huge: the event loop goes on, and memory is bounded.

/** CPU time that one turn of the event loop may take, with room for the collection of garbage on a busy machine. */
const maxTurnMs = 100

const toolText = (number: number, description: string) =>
  JSON.stringify({ name: `tool-${number}`, description, inputSchema: { type: 'object' } })

/** Texts of the `result` of `tools/list`: so many tools in so many pages. */
function pagesOf(count: number, pages: number, description = 'what it does'): string[] {
  const perPage = Math.ceil(count / pages)
  return Array.from({ length: pages }, (_, page) => {
    const tools = Array.from({ length: perPage }, (_, index) => toolText(page * perPage + index, description))
    const next = page + 1 < pages ? `,"nextCursor":"${page + 1}"` : ''
    return `{"tools":[${tools.join(',')}]${next}}`
  })
}

/** An HTTP target that lists these pages. */
function listing(name: string, pages: readonly string[]) {
  const send: Send = async ({ body }) => {
    const message: JsonObject = JSON.parse(String(body))
    const page = pages[Number(member(message, 'params', 'cursor') ?? 0)]
    const result = message['method'] === 'tools/list' ? page : JSON.stringify(introduction(name))
    const text = `{"jsonrpc":"2.0","id":${JSON.stringify(message['id'])},"result":${result}}`
    return { status: 200, headers: { 'content-type': 'application/json' }, body: Buffer.from(text) }
  }
  return compileStreamableHttp(name, { host: 'http://target.example' }, { send })
}

type Listings = Readonly<Record<string, readonly string[]>>

async function open(targets: Listings, failOpen = false): Promise<TargetSession> {
  const members = Object.entries(targets).map(([name, pages]) => listing(name, pages))
  const options = { prefixMode: 'conditional', failOpen, version: '1', initializeTimeoutMs: 5_000 } as const
  const session = federate(members, options)?.target.open()
  if (session === undefined) throw new Error('no targets')
  await answerTo(session, 'initialize')
  return session
}

async function answerTo(
  session: TargetSession,
  method: string,
  params: JsonObject = {},
  permissions?: Permissions,
): Promise<Collected> {
  const sink = collect()
  const context = fixtureContext(permissions === undefined ? {} : { permissions })
  session.request(request(1, method, params), context, sink)
  await until(`${method} is answered`, () => sink.failure !== undefined || sink.texts.length > 0, 20_000)
  return sink
}

/** Longest CPU time of a turn of the event loop while `work` runs. */
async function longestTurnMs(work: () => Promise<unknown>): Promise<number> {
  let longest = 0
  let watching = true
  let before = process.threadCpuUsage()
  const watch = () => {
    const now = process.threadCpuUsage()
    longest = Math.max(longest, (now.user + now.system - before.user - before.system) / 1_000)
    before = now
    if (watching) setImmediate(watch)
  }
  setImmediate(watch)
  await work()
  watching = false
  return longest
}

describe('two targets with 40,000 tools each', () => {
  it('are listed in bounded pages, without stopping the event loop', async () => {
    const pages = pagesOf(40_000, 4)
    const session = await open({ a: pages, b: pages })
    const names = new Set<unknown>()
    const longest = await longestTurnMs(async () => {
      let cursor: unknown
      do {
        const { texts, failure } = await answerTo(
          session,
          'tools/list',
          typeof cursor === 'string' ? { cursor } : {},
        )
        expect(failure).toBeUndefined()
        // Taken apart without parsing, which would be a long turn of the test's own.
        const [text = ''] = texts
        for (const match of text.matchAll(/"name":"([^"]+)"/g)) names.add(match[1])
        cursor = /"nextCursor":"([^"]+)"/.exec(text.slice(-1_000))?.[1]
      } while (cursor !== undefined)
    })
    expect(names.size).toBe(80_000)
    expect(longest).toBeLessThan(maxTurnMs)
  })

  it('fail with the reason where they come in one page', async () => {
    const pages = pagesOf(40_000, 1)
    const session = await open({ a: pages, b: pages })
    let answer: Collected | undefined
    const longest = await longestTurnMs(async () => {
      answer = await answerTo(session, 'tools/list')
    })
    expect(answer?.failure).toMatchObject({
      kind: 'error',
      error: { message: expect.stringMatching(/target "a" .*more than 100000 objects, arrays and members/) },
    })
    expect(longest).toBeLessThan(maxTurnMs)
  })

  it('do not keep a target from being listed under failOpen', async () => {
    const session = await open({ a: pagesOf(40_000, 1), b: pagesOf(3, 1) }, true)
    const { texts } = await answerTo(session, 'tools/list')
    expect(JSON.parse(texts[0] ?? '').result.tools.map(({ name }: { name: string }) => name)).toEqual([
      'b_tool-0',
      'b_tool-1',
      'b_tool-2',
    ])
  })
})

describe('a list under rules', () => {
  const permissions: Permissions = {
    permits: ({ name }) => name.endsWith('7'),
    permitsMethod: () => true,
  }

  it('is filtered without stopping the event loop', async () => {
    const session = await open({ a: pagesOf(14_000, 1) })
    let answer: Collected | undefined
    const longest = await longestTurnMs(async () => {
      answer = await answerTo(session, 'tools/list', {}, permissions)
    })
    expect(answer?.texts[0]?.match(/"name":/g)).toHaveLength(1_400)
    expect(longest).toBeLessThan(maxTurnMs)
  })

  it('fails with the reason where a page is larger than 4 MiB', async () => {
    const session = await open({ a: pagesOf(50, 1, 'x'.repeat(100_000)) })
    const { failure } = await answerTo(session, 'tools/list', {}, permissions)
    expect(failure).toMatchObject({ error: { code: 'upstream_too_large' } })
  })
})
