import { describe, expect, it } from 'vitest'
import { type ApiDocument, readApiDocument } from './document.ts'

type Paths = Record<string, unknown>

function documentWith(paths: Paths, more: object = {}): unknown {
  return { openapi: '3.1.0', info: { title: 'T', version: '1' }, paths, ...more }
}

function read(paths: Paths, more: object = {}): ApiDocument {
  const result = readApiDocument(documentWith(paths, more))
  if (result.kind === 'mistakes') throw new Error(JSON.stringify(result.mistakes))
  return result.document
}

function mistakes(value: unknown): string[] {
  const result = readApiDocument(value)
  if (result.kind === 'document') return []
  return result.mistakes.map(({ place, message }) => `${place.join(' ')}: ${message}`)
}

function operation(more: object) {
  const { operations } = read({ '/x': { post: { operationId: 'op', ...more } } })
  const found = operations.get('op')
  if (!found) throw new Error('no operation')
  return found
}

const json = (schema: unknown) => ({ content: { 'application/json': { schema } } })

describe('an operation', () => {
  it('becomes a tool whose arguments are grouped by position', () => {
    const { tool, method, path, parameters, body } = operation({
      summary: `A summary ${'x'.repeat(100)}`,
      description: 'Does it.',
      parameters: [
        { name: 'q', in: 'query', description: 'Search', schema: { type: 'string' } },
        { name: 'X-A', in: 'header', required: true, schema: { type: 'integer' } },
      ],
      requestBody: { required: true, ...json({ type: 'object', properties: { n: { type: 'number' } } }) },
    })
    expect(tool).toEqual({
      name: 'op',
      title: `A summary ${'x'.repeat(54)}`,
      description: 'Does it.',
      annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false },
      inputSchema: {
        type: 'object',
        properties: {
          query: {
            type: 'object',
            properties: { q: { type: 'string', description: 'Search' } },
            additionalProperties: false,
          },
          header: {
            type: 'object',
            properties: { 'X-A': { type: 'integer' } },
            required: ['X-A'],
            additionalProperties: false,
          },
          body: { type: 'object', properties: { n: { type: 'number' } } },
        },
        required: ['header', 'body'],
        additionalProperties: false,
      },
    })
    expect([method, path, parameters.length, body?.form]).toEqual(['POST', '/x', 2, 'json'])
  })

  it('is named by its id, or else by its method and path, in characters that tool names have', () => {
    const get = {}
    const { operations } = read({
      '/users/{id}/keys': {
        parameters: [{ name: 'id', in: 'path', required: true }],
        get,
        put: { operationId: 'a b/c' },
      },
      '/': { get },
    })
    expect([...operations.keys()]).toEqual(['get_users_id_keys', 'a_b_c', 'get'])
  })

  it('is described by its summary, or else its name, where it has no description', () => {
    expect(operation({ summary: 'S' }).tool['description']).toBe('S')
    expect(operation({}).tool).toMatchObject({ description: 'op' })
  })

  it('takes the parameters of its path, and replaces them by its own', () => {
    const { operations } = read({
      '/x/{id}': {
        parameters: [
          { name: 'id', in: 'path', required: true, schema: { type: 'string' } },
          { name: 'v', in: 'query', schema: { type: 'string' } },
        ],
        get: { operationId: 'op', parameters: [{ name: 'v', in: 'query', required: true }] },
      },
    })
    expect(operations.get('op')?.parameters.map(({ name, required }) => [name, required])).toEqual([
      ['id', true],
      ['v', true],
    ])
  })

  it('has no parameters that are cookies or belong to HTTP itself', () => {
    const names = ['Authorization', 'Content-Type', 'Accept', 'Host', 'content-length']
    const headers = names.map((name) => ({ name, in: 'header', schema: {} }))
    expect(operation({ parameters: [...headers, { name: 'c', in: 'cookie' }] }).parameters).toEqual([])
  })

  it('is left out, with the reason, when nothing of its body is supported', () => {
    const upload = { post: { requestBody: { content: { 'multipart/form-data': {} } } } }
    const { operations, skipped: leftOut } = read({ '/upload': upload, '/x': { get: {} } })
    expect([...operations.keys()]).toEqual(['get_x'])
    expect(leftOut).toEqual(['POST /upload: no supported media type among multipart/form-data'])
  })

  it.each([
    [['text/plain', 'application/vnd.api+json'], 'application/vnd.api+json', 'json'],
    [['application/octet-stream', 'text/csv'], 'text/csv', 'text'],
    [['application/octet-stream'], 'application/octet-stream', 'base64'],
    [
      ['application/x-www-form-urlencoded', 'multipart/form-data'],
      'application/x-www-form-urlencoded',
      'urlencoded',
    ],
  ])('takes the best of the bodies %j', (types, mediaType, form) => {
    const content = Object.fromEntries(types.map((type) => [type, {}]))
    expect(operation({ requestBody: { content } }).body).toEqual({ required: false, mediaType, form })
  })

  it('may be described elsewhere in the document', () => {
    const { operations } = read(
      { '/x': { $ref: '#/components/pathItems/X' } },
      {
        components: {
          pathItems: {
            X: {
              get: {
                parameters: [{ $ref: '#/components/parameters/Q' }],
                requestBody: { $ref: '#/components/requestBodies/B' },
              },
            },
          },
          parameters: { Q: { name: 'q', in: 'query' } },
          requestBodies: { B: json({ $ref: '#/components/schemas/S' }) },
          schemas: {
            S: { type: 'array', items: { $ref: '#/components/schemas/I' } },
            I: { type: 'integer' },
          },
        },
      },
    )
    expect(operations.get('get_x')?.tool['inputSchema']).toMatchObject({
      properties: {
        query: { properties: { q: {} } },
        body: { type: 'array', items: { type: 'integer' } },
      },
    })
  })
})

describe('a document', () => {
  it.each([
    ['nothing', undefined, 'an object'],
    ['a list', [], 'an object'],
    ['Swagger', { swagger: '2.0', paths: {} }, 'Swagger 2.0'],
    ['another version', { openapi: '4.0.0', paths: {} }, 'OpenAPI 3.0 or 3.1'],
    ['no paths', { openapi: '3.1.0' }, 'paths must be an object'],
    [
      'two operations of one name',
      documentWith({ '/a': { get: { operationId: 'x' }, put: { operationId: 'x' } } }),
      'operation name "x" is not unique',
    ],
    [
      'two derived names that are equal',
      documentWith({ '/a/b': { get: {} }, '/a_b': { get: {} } }),
      'set operationId',
    ],
    ['a path that is none', documentWith({ 'a?b': { get: {} } }), 'path must start with a slash'],
    ['a path parameter nobody describes', documentWith({ '/a/{id}': { get: {} } }), '"id" is not described'],
    [
      'a style nobody knows',
      documentWith({ '/a': { get: { parameters: [{ name: 'q', in: 'query', style: 'matrix' }] } } }),
      'style "matrix"',
    ],
    [
      'a header that cannot be one',
      documentWith({ '/a': { get: { parameters: [{ name: 'a\nb', in: 'header' }] } } }),
      'cannot be the name of a header',
    ],
    [
      'a parameter nowhere',
      documentWith({ '/a': { get: { parameters: [{ name: 'q', in: 'body' }] } } }),
      'in must be',
    ],
    [
      'a reference out of it',
      documentWith({ '/a': { $ref: 'http://169.254.169.254/#/x' } }),
      'refers to another document',
    ],
    [
      'a file reference',
      documentWith({ '/a': { $ref: '../secrets.yaml#/x' } }),
      'refers to another document',
    ],
    ['a dead reference', documentWith({ '/a': { $ref: '#/nowhere' } }), 'does not exist in the document'],
    [
      'a reference into what all objects have',
      documentWith({ '/a': { $ref: '#/constructor' } }),
      'does not exist in the document',
    ],
  ])('is refused for %s', (_, value, message) => {
    expect(mistakes(value)).toEqual([expect.stringContaining(message)])
  })

  it('reports all errors with their path', () => {
    const value = documentWith({
      '/a': { get: { parameters: 7 } },
      '/b': { get: { requestBody: 'x' }, put: { parameters: [{ in: 'query' }] } },
    })
    expect(mistakes(value)).toEqual([
      'paths /a get parameters: must be a list',
      'paths /b get requestBody: must be an object',
      'paths /b put parameters 0: name must be text',
    ])
  })

  it.each([
    [undefined, ''],
    [[], ''],
    [[{ url: 'https://api.test/v1/' }], '/v1'],
    [[{ url: '/v2' }, { url: '/v3' }], '/v2'],
    [[{ url: 'https://api.test' }], ''],
    [[{ url: '/{stage}/x', variables: { stage: { default: 'prod' } } }], '/prod/x'],
  ])('puts the path of its first server in front: %j', (servers, serverPath) => {
    expect(read({}, { servers }).serverPath).toBe(serverPath)
  })

  it.each(['3.0.0', '3.0.4', '3.1.1', 3.1, 3])('may be of version %s', (openapi) => {
    expect(mistakes({ openapi, paths: {} })).toEqual([])
  })
})
