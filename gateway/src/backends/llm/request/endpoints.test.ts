import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  defaultEndpoints,
  endpointsBySuffix,
  errorFormatOf as formatOf,
  isDisguisedEndpoint,
  matchEndpoint,
  type RouteType,
  routeTypes,
} from './endpoints.ts'

describe('matchEndpoint', () => {
  it.each([
    ['/v1/chat/completions', 'chat'],
    ['/chat/completions', 'chat'],
    ['/team-a/v1/chat/completions', 'chat'],
    ['/v1/team/v1/completions', 'completions'],
    ['/v1/embeddings', 'embeddings'],
    ['/v1/responses', 'responses'],
    ['/v1/messages', 'messages'],
    ['/v1/messages/count_tokens', 'count_tokens'],
    ['/openai/v1/responses', 'responses'],
    ['/v1/moderations', 'moderations'],
    ['/a/v1/rerank', 'rerank'],
    ['/v2/rerank', 'rerank_v2'],
    ['/a/v2/rerank', 'rerank_v2'],
    ['/v2/embed', 'embed'],
    ['/v1/images/generations', 'images'],
    ['/openai/deployments/dall-e/images/generations', 'images'],
    ['/v1/audio/speech', 'speech'],
    ['/openai/deployments/gpt-4o/chat/completions', 'chat'],
    ['/team/openai/deployments/a%2Fb/embeddings', 'embeddings'],
    ['/model/amazon.nova-pro-v1%3A0/converse', 'converse'],
    ['/team/model/arn:aws:bedrock:r:1:inference-profile/x/converse-stream', 'converse'],
    ['/model/m/invoke-with-response-stream', 'invoke'],
    ['/model/m/count-tokens', 'converse_count'],
    ['/v1/projects/p/locations/l/publishers/anthropic/models/claude-x@1:rawPredict', 'messages'],
    ['/v1/projects/p/locations/l/publishers/anthropic/models/count-tokens:rawPredict', 'count_tokens'],
  ])('matches %s', (path, endpoint) => {
    expect(matchEndpoint(path)).toEqual({ kind: 'endpoint', endpoint })
  })

  it.each([
    ['/v1/models', undefined],
    ['/models', undefined],
    ['/a/v1/models/gpt-4o', 'gpt-4o'],
    ['/v1/models/org/name', 'org/name'],
    ['/v1/models/org%2Fname', 'org/name'],
    ['/v1/models/org/v1/name', 'org/v1/name'],
    ['/v1/models/50%', '50%'],
  ])('lists models at %s', (path, id) => {
    expect(matchEndpoint(path)).toEqual({ kind: 'models', id })
  })

  it.each([
    '/',
    '/v1',
    '/v1/',
    '/v1/threads/t/messages',
    '/x/chat/completions',
    '/v1/chat/completions/x',
    '/v1/threads',
    '/v2/rerank/x',
    '/openai/deployments/chat',
    '/openai/deployments//chat/completions',
    '/deployments/gpt/chat/completions',
  ])('does not match %s', (path) => {
    expect(matchEndpoint(path)).toEqual({ kind: 'unknown' })
  })
})

it.each([
  '/v1/chat%2Fcompletions',
  '/v1/chat%252Fcompletions',
  '/v1/chat/completions%00',
  '/v1/chat/completions%00/x',
  '/v1/chat/completions%3Fx',
  '/v1/messages%23',
  '/v1/chat%2fcompletions%20',
  '/V1/Chat/Completions',
  '/v1/chat/completions;v=2',
  '/v1/chat%5Ccompletions',
  '/v1/%2Fmessages',
  '/v1/Models',
  '/v1/chat%2F.%2Fcompletions',
])('detects %s as a disguised call', (path) => expect(isDisguisedEndpoint(path)).toBe(true))

it.each(['/v1/videos', '/v1/chat/completions/x', '/v1/videos/50%'])('accepts %s as an unknown path', (path) =>
  expect(isDisguisedEndpoint(path)).toBe(false),
)

it('reads calls of clouds at backends with any routes', () => {
  const routes = [{}, { '*': 'passthrough' }, { '/invoke': 'passthrough', '*': 'passthrough' }] as const
  for (const { match } of routes.map((each) => endpointsBySuffix(each))) {
    expect(match('/model/m/invoke')).toEqual({ kind: 'endpoint', endpoint: 'invoke' })
    expect(match('/x/publishers/anthropic/models/m:rawPredict')).toMatchObject({ endpoint: 'messages' })
  }
  const { match } = endpointsBySuffix({ '*': 'passthrough' })
  expect(match('/model/m/Invoke')).toEqual({ kind: 'unknown' })
  expect(match('/model/m%2Finvoke')).toEqual({ kind: 'unknown' })
  expect(match('/v1/files')).toEqual({ kind: 'passthrough' })
})

it('selects the error shape by the API of the path', () => {
  const errorFormatOf = (path: string, headers = {}) => formatOf({ path, headers })
  expect(errorFormatOf('/a/v1/messages')).toBe('anthropic')
  expect(errorFormatOf('/v1/messages/count_tokens')).toBe('anthropic')
  expect(errorFormatOf('/v1/chat/completions')).toBe('openai')
  expect(errorFormatOf('/nowhere')).toBe('openai')
  expect(errorFormatOf('/model/m/invoke')).toBe('aws')
  expect(errorFormatOf('/x/publishers/anthropic/models/m:rawPredict')).toBe('anthropic')
  // Paths that both APIs have, or neither: Anthropic's clients always send their version.
  expect(errorFormatOf('/v1/models', { 'anthropic-version': '2023-06-01' })).toBe('anthropic')
  expect(errorFormatOf('/v1/videos', { 'anthropic-version': '2023-06-01' })).toBe('anthropic')
  expect(errorFormatOf('/v1/chat/completions', { 'anthropic-version': '2023-06-01' })).toBe('openai')
})

describe('defaultEndpoints', () => {
  it('pass unknown paths only if configured, and never a disguised call', () => {
    expect(defaultEndpoints(false).match('/v1/videos')).toEqual({ kind: 'unknown' })
    expect(defaultEndpoints(true).match('/v1/videos')).toEqual({ kind: 'passthrough' })
    expect(defaultEndpoints(true).match('/v1/chat%2Fcompletions')).toEqual({ kind: 'unknown' })
    expect(defaultEndpoints(true).match('/v1/messages')).toMatchObject({ endpoint: 'messages' })
  })
})

describe('endpointsBySuffix', () => {
  const segment = fc.constantFrom('v1', 'chat', 'messages', 'a')
  const path = fc.array(segment, { minLength: 1, maxLength: 4 }).map((parts) => `/${parts.join('/')}`)
  const called = fc.constantFrom<RouteType>('messages', 'completions', 'responses', 'embeddings')

  it('matches the longest suffix, then *, then chat completions', () => {
    const maps = fc.array(fc.tuple(fc.oneof(path, fc.constant('*')), called), { maxLength: 5 })
    fc.assert(
      fc.property(maps, path, (entries, asked) => {
        const routes = Object.fromEntries(entries)
        const fitting = Object.keys(routes).filter((suffix) => suffix !== '*' && asked.endsWith(suffix))
        const longest = fitting.toSorted((one, other) => other.length - one.length)[0] ?? '*'
        const expected = routeTypes[routes[longest] ?? 'completions']
        expect(endpointsBySuffix(routes).match(asked)).toEqual(expected)
      }),
    )
  })

  it('matches model ids after the path of the list', () => {
    const { match } = endpointsBySuffix({ '/v1/models': 'models', '*': 'passthrough' })
    expect(match('/a/v1/models')).toEqual({ kind: 'models', id: undefined })
    expect(match('/a/v1/models/org%2Fname')).toEqual({ kind: 'models', id: 'org/name' })
    expect(match('/a/v1/other')).toEqual({ kind: 'passthrough' })
  })

  it('passes all paths for * passthrough', () => {
    const { match } = endpointsBySuffix({ '*': 'passthrough' })
    expect(match('/v1/chat/completions')).toEqual({ kind: 'passthrough' })
  })
})
