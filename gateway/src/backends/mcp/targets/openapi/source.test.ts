import { describe, expect, it } from 'vitest'
import { fixtureContext } from '../../../../../test/fixtures/pipeline.ts'
import { ThreadPoolError } from '../../../../lib/scheduling/thread-pool.ts'
import type { Reply } from '../../../../net/http-client/send.ts'
import { createDocumentTask, documentTask } from './document-task.ts'
import { createSource, readInline, type SourceConfig, unexpectedKey } from './source.ts'

const document = (title: string) => JSON.stringify({ openapi: '3.1.0', info: { title }, paths: {} })

function contextWith(files: Record<string, string> = {}, answers: (Reply | Error)[] = []) {
  const base = fixtureContext()
  const sent: string[] = []
  const warnings: object[] = []
  return {
    ...base,
    sent,
    warnings,
    log: { ...base.log, warn: (fields: object) => warnings.push(fields) },
    readFile(path: string) {
      const text = files[path]
      if (text === undefined) throw new Error(`cannot read ${path}`)
      return text
    },
    parseYaml: (text: string) => {
      throw new Error(`no YAML: ${text}`)
    },
    send({ origin, path }: { origin: string; path: string }) {
      sent.push(origin + path)
      const answer = answers.shift() ?? new Error('nothing to answer')
      return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer)
    },
  }
}

function answer(text: string, status = 200): Reply {
  return { status, headers: {}, body: Buffer.from(text) }
}

async function titleFrom(source: ReturnType<typeof createSource>): Promise<string> {
  const { title } = await source()
  return title
}

describe('a document that is configured', () => {
  it.each<[string, SourceConfig]>([
    ['as an object', { openapi: '3.1.0', info: { title: 'T' }, paths: {} }],
    ['as text', document('T')],
    ['in a file', { file: 'api.json' }],
  ])('%s is read at once', async (_, config) => {
    expect(await titleFrom(createSource('pets', config, contextWith({ 'api.json': document('T') })))).toBe(
      'T',
    )
  })

  it('in YAML is read by the reader of YAML', async () => {
    const context = {
      ...contextWith({ 'api.yaml': 'openapi: x' }),
      parseYaml: () => JSON.parse(document('Y')),
    }
    expect(await titleFrom(createSource('pets', { file: 'api.yaml' }, context))).toBe('Y')
  })

  it.each<[string, SourceConfig, string]>([
    [
      'with mistakes',
      { openapi: '3.1.0', paths: { '/a': 7 } },
      'mcp.targets "pets": OpenAPI document: paths./a: must be an object',
    ],
    [
      'in a file with mistakes',
      { file: 'bad.json' },
      'OpenAPI document (bad.json): openapi must be a version',
    ],
    ['in no JSON', '{"openapi"', 'OpenAPI document'],
    ['in no YAML', 'openapi: x', 'no YAML'],
    ['in a file that is not there', { file: 'none' }, 'cannot read none'],
    ['that is too large', `{"x":"${'x'.repeat(17_000_000)}"}`, 'larger than'],
  ])('%s is refused', (_, config, message) => {
    const context = contextWith({ 'bad.json': '{"openapi":[]}' })
    expect(() => createSource('pets', config, context)).toThrow(message)
  })

  it('logs skipped operations', () => {
    const context = contextWith()
    const post = { requestBody: { content: { 'multipart/form-data': {} } } }
    createSource('pets', { openapi: '3.1.0', paths: { '/up': { post } } }, context)
    expect(context.warnings).toMatchObject([{ target: 'pets', reason: expect.stringContaining('POST /up') }])
  })

  it('can be checked in place when it is an object', () => {
    expect(readInline({ openapi: '3.1.0', paths: {} })).toMatchObject({ kind: 'document' })
    expect(readInline({ file: 'x' })).toBe(undefined)
    expect(readInline('text')).toBe(undefined)
    expect(readInline({ fiel: 'x' })).toMatchObject({ kind: 'mistakes' })
  })

  it('has nothing beside file and url', () => {
    expect(unexpectedKey({ file: 'x', path: '/y' })).toBe('path')
    expect(unexpectedKey({ url: 'http://x', file: 'y' })).toBe('url')
    expect(unexpectedKey({ openapi: '3.1.0', file: 'x', paths: {} })).toBe(undefined)
  })
})

describe('a document on a server', () => {
  const config = { url: 'http://api.test/v1/openapi.json?x=1' }

  it('is fetched once at first use', async () => {
    const context = contextWith({}, [answer(document('A'))])
    const source = createSource('pets', config, context)
    expect(context.sent).toEqual([])
    expect(await Promise.all([titleFrom(source), titleFrom(source)])).toEqual(['A', 'A'])
    expect(context.sent).toEqual([config.url])
  })

  it('is fetched again after a while, in the background', async () => {
    const context = contextWith({}, [answer(document('A')), answer(document('B'))])
    const source = createSource('pets', config, context)
    await source()
    context.clock.advance(299_000)
    expect(await titleFrom(source)).toBe('A')
    expect(context.sent).toHaveLength(1)
    context.clock.advance(2_000)
    expect(await titleFrom(source)).toBe('A')
    await new Promise(setImmediate)
    expect(await titleFrom(source)).toBe('B')
  })

  it('is the same object as long as the server sends the same', async () => {
    const context = contextWith({}, [answer(document('A')), answer(document('A'))])
    const source = createSource('pets', config, context)
    const first = await source()
    context.clock.advance(301_000)
    await source()
    await new Promise(setImmediate)
    expect(context.sent).toHaveLength(2)
    expect(await source()).toBe(first)
  })

  it('stays in use while refreshes fail', async () => {
    const context = contextWith({}, [answer(document('A')), new Error('down'), answer('no JSON')])
    const source = createSource('pets', config, context)
    await source()
    for (let round = 0; round < 2; round += 1) {
      context.clock.advance(301_000)
      await source()
      await new Promise(setImmediate)
    }
    expect(context.sent).toHaveLength(3)
    expect(await titleFrom(source)).toBe('A')
  })

  it('that cannot be had is asked for again only after a pause', async () => {
    const context = contextWith({}, [answer('', 404), answer(document('A'))])
    const source = createSource('pets', config, context)
    await expect(source()).rejects.toThrow('its server returned status 404')
    await expect(source()).rejects.toThrow('status 404')
    expect(context.sent).toHaveLength(1)
    context.clock.advance(5_001)
    expect(await titleFrom(source)).toBe('A')
  })
})

describe('a large document from a server', () => {
  const padded = (title: string) => {
    const operation = (id: string) => ({
      get: { operationId: id, responses: {}, 'x-notes': 'x'.repeat(400) },
    })
    const paths = Object.fromEntries(
      Array.from({ length: 60 }, (_, index) => [`/p${index}`, operation(`o${index}`)]),
    )
    return JSON.stringify({ openapi: '3.1.0', info: { title }, paths })
  }

  /** Runs the task in this thread, through the copies that a thread would make. */
  const onThread = (context: ReturnType<typeof contextWith>, tasks: string[] = []) => ({
    ...context,
    threads: {
      run: async (task: string, request: unknown) => {
        tasks.push(task)
        return structuredClone(createDocumentTask(context.parseYaml)(structuredClone(request) as never))
      },
      close() {},
    },
  })

  it('is read on a thread, with the same operations', async () => {
    const tasks: string[] = []
    const context = onThread(contextWith({}, [answer(padded('T'))]), tasks)
    const read = await createSource('pets', { url: 'http://api.test/doc' }, context)()
    expect(tasks).toEqual([documentTask])
    expect(read).toEqual(await createSource('pets', padded('T'), contextWith())())
    expect(read.operations.size).toBe(60)
  })

  it('cannot be used where it has mistakes, or where no thread reads it', async () => {
    const broken = onThread(contextWith({}, [answer(`${padded('T')}}`)]))
    await expect(createSource('pets', { url: 'http://api.test/doc' }, broken)()).rejects.toThrow(
      'cannot be used',
    )
    const context = contextWith({}, [answer(padded('T'))])
    const run = () => Promise.reject(new ThreadPoolError('task deadline exceeded'))
    const late = { ...context, threads: { run, close() {} } }
    await expect(createSource('pets', { url: 'http://api.test/doc' }, late)()).rejects.toThrow('deadline')
  })
})
