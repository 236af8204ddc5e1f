import { describe, expect, it } from 'vitest'
import { federate } from '../../src/backends/mcp/federation/federation.ts'
import { compileStreamableHttp } from '../../src/backends/mcp/targets/streamable-http/streamable-http.ts'
import type { Permissions, TargetSession } from '../../src/backends/mcp/targets/target.ts'
import type { JsonObject } from '../../src/lib/json/json.ts'
import type { Send } from '../../src/net/http-client/send.ts'
import { type Collected, collect, fixtureContext, introduction, request } from '../fixtures/mcp.ts'
import { countTurns } from '../support/count-turns.ts'
import { member } from '../support/mock-server.ts'
import { within } from '../support/wait.ts'

// Targets whose lists are huge: the event loop goes on, and memory is bounded.

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
  const answered = Promise.withResolvers<void>()
  session.request(request(1, method, params), context, {
    ...sink,
    message(message, mark) {
      answered.resolve()
      return sink.message(message, mark)
    },
    fail(failure) {
      answered.resolve()
      sink.fail(failure)
    },
  })
  await within(`the answer to ${method}`, answered.promise, 20_000)
  return sink
}

describe('two targets with long lists', () => {
  it('are listed in bounded pages, without stopping the event loop', async () => {
    const pages = pagesOf(20_000, 4)
    const session = await open({ a: pages, b: pages })
    const names = new Set<unknown>()
    const turns = await countTurns(async () => {
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
    expect(names.size).toBe(40_000)
    // Work on at most 64 Ki characters between two turns.
    expect(turns).toBeGreaterThan(60)
  })

  it('fail with the reason where 40,000 tools come in one page', async () => {
    const pages = pagesOf(40_000, 1)
    const session = await open({ a: pages, b: pages })
    const answer = await answerTo(session, 'tools/list')
    expect(answer.failure).toMatchObject({
      kind: 'error',
      error: { message: expect.stringMatching(/target "a" .*more than 100000 objects, arrays and members/) },
    })
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
    const turns = await countTurns(async () => {
      answer = await answerTo(session, 'tools/list', {}, permissions)
    })
    expect(answer?.texts[0]?.match(/"name":/g)).toHaveLength(1_400)
    expect(turns).toBeGreaterThan(20)
  })

  it('fails with the reason where a page is larger than 4 MiB', async () => {
    const session = await open({ a: pagesOf(50, 1, 'x'.repeat(100_000)) })
    const { failure } = await answerTo(session, 'tools/list', {}, permissions)
    expect(failure).toMatchObject({ error: { code: 'upstream_too_large' } })
  })
})
