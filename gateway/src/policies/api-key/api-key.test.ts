import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { fixtureContext, fixtureExchange, textOf, throughPolicies } from '../../../test/fixtures/pipeline.ts'
import { compileAuthentication } from '../../identity/authentication.ts'
import type { RequestFacts } from '../../pipeline/exchange.ts'
import { check } from '../../schema/check.ts'
import { type ApiKeyConfig, apiKeySchema, checkApiKey, compileApiKey } from './api-key.ts'

const keyHash = (key: string) => `sha256:${createHash('sha256').update(key).digest('hex')}`
const keys: ApiKeyConfig['keys'] = [
  { key: 'key-a', metadata: { name: 'a', user: 'ada', group: 'platform' } },
  { keyHash: keyHash('key-b').toUpperCase().replace('SHA256', 'sha256'), metadata: { id: 'id-b', group: 7 } },
]

function send(config: Partial<ApiKeyConfig>, request: Partial<RequestFacts>) {
  const policy = compileAuthentication('api key', [
    compileApiKey({ keys, ...config }, fixtureContext(), 'llm'),
  ])
  const exchange = fixtureExchange(request)
  const reply = throughPolicies([policy], exchange)
  const { headers, query } = exchange.facts.request
  return { reply, status: reply.status, text: textOf(reply), exchange, headers, query }
}

const bearer = (key: string) => ({ headers: { authorization: `Bearer ${key}` } })

describe('a known key', () => {
  it.each([
    ['a bearer token', { authorization: 'Bearer key-a' }],
    ['a bearer token in another case', { authorization: 'bEARER   key-a ' }],
    ['x-api-key', { 'x-api-key': 'key-a' }],
  ])('is accepted as %s, and taken off the request', (_, headers) => {
    const { status, exchange, headers: left } = send({}, { headers: { ...headers, accept: '*/*' } })
    expect(status).toBe(200)
    expect(left).toEqual({ accept: '*/*' })
    expect(exchange.facts.apiKey).toMatchObject({ name: 'a', user: 'ada', group: 'platform' })
    expect(exchange.auth.keyGroup).toBe('platform')
  })

  it('is accepted by its hash, in any case of its digits', () => {
    const { status, exchange } = send({}, bearer('key-b'))
    expect(status).toBe(200)
    expect(exchange.facts.apiKey).toEqual({ id: 'id-b', group: 7 })
    expect(exchange.auth.keyGroup).toBe('')
  })

  it('has an id that stays the same and reveals neither key nor hash', () => {
    const id = send({}, bearer('key-a')).exchange.facts.apiKey?.['id']
    const again = send({ keys: [{ keyHash: keyHash('key-a') }] }, bearer('key-a')).exchange.facts.apiKey?.[
      'id'
    ]
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(again).toBe(id)
    expect(keyHash('key-a')).not.toContain(String(id).slice(0, 8))
  })

  it('has metadata that no one changes', () => {
    expect(Object.isFrozen(send({}, bearer('key-a')).exchange.facts.apiKey)).toBe(true)
  })

  it('clears the other default location as well', () => {
    for (const headers of [
      { authorization: 'Bearer key-a', 'x-api-key': 'sk-unchecked' },
      { authorization: 'Bearer sk-unchecked', 'x-api-key': 'key-a' },
      { authorization: 'Basic dTpw', 'x-api-key': 'key-a' },
    ]) {
      const sent = send({}, { headers })
      expect(sent.status).toBe(200)
      expect(sent.headers).toEqual({})
    }
  })

  it('may use the models it lists', () => {
    const mayUse = (allowedModels?: string[]) => {
      const record = allowedModels === undefined ? { key: 'k' } : { key: 'k', allowedModels }
      return send({ keys: [record] }, bearer('k')).exchange.auth.models?.allows
    }
    expect(mayUse()).toBeUndefined()
    const some = mayUse(['gpt-5', 'claude-*', '*-mini'])
    expect(['gpt-5', 'claude-x', 'claude-', 'o9-mini'].map((model) => some?.(model))).not.toContain(false)
    expect(['gpt-5.1', 'gpt', 'xclaude-1', 'mini', ''].map((model) => some?.(model))).not.toContain(true)
    expect(mayUse([])?.('gpt-5')).toBe(false)
    expect(mayUse(['*'])?.('anything')).toBe(true)
    const named = send({ keys: [{ key: 'k', allowedModels: ['gpt-5'] }] }, bearer('k'))
    expect(named.exchange.auth.models?.patterns).toEqual(['gpt-5'])
  })
})

describe('a request without a known key', () => {
  const unknown = 'api key authentication failure: invalid credentials'
  const missing = 'api key authentication failure: no API Key found'

  it.each([
    ['unknown', bearer('nope'), unknown],
    ['unknown in x-api-key', { headers: { 'x-api-key': 'nope' } }, unknown],
    ['a prefix of a key', bearer('key-'), unknown],
    ['missing', {}, missing],
    ['empty', { headers: { authorization: 'Bearer ', 'x-api-key': '' } }, missing],
    ['in the wrong scheme', { headers: { authorization: 'Basic key-a' } }, missing],
    ['without a scheme', { headers: { authorization: 'key-a' } }, missing],
  ])('is refused when the key is %s', (_, request, message) => {
    const { reply, status, text, exchange } = send({}, request)
    expect(status).toBe(401)
    expect(reply.headers['www-authenticate']).toBe('Bearer')
    expect(JSON.parse(text).error).toMatchObject({ message, code: 'invalid_api_key' })
    expect(exchange.log.refusedBy).toBe(`api-key: ${message.split(': ')[1]}`)
    expect(exchange.facts.apiKey).toBeUndefined()
  })

  it('passes in optional mode only when it has none', () => {
    expect(send({ mode: 'optional' }, {}).status).toBe(200)
    expect(send({ mode: 'optional' }, bearer('nope')).status).toBe(401)
  })

  it('passes in permissive mode with its credential in place', () => {
    const { status, headers } = send({ mode: 'permissive' }, bearer('nope'))
    expect(status).toBe(200)
    expect(headers).toEqual({ authorization: 'Bearer nope' })
    expect(send({ mode: 'permissive' }, bearer('key-a')).headers).toEqual({})
  })

  it('is refused by a gateway that has no keys yet', () => {
    expect(send({ keys: [] }, bearer('key-a')).status).toBe(401)
  })
})

describe('a location', () => {
  it('may be a header with a prefix, and then is the only one', () => {
    const location = { header: { name: 'X-Team', prefix: 'Key ' } }
    expect(send({ location }, { headers: { 'x-team': 'key key-a' } })).toMatchObject({
      status: 200,
      headers: {},
    })
    expect(send({ location }, { headers: { 'x-team': 'key-a' } }).status).toBe(401)
    expect(send({ location }, bearer('key-a')).status).toBe(401)
  })

  it('may be a query parameter, of which no copy stays', () => {
    const location = { queryParameter: { name: 'api key' } }
    const query = '?a=1&api+key=key%2Da&b=%zz&api%20key=other&c'
    expect(send({ location }, { query })).toMatchObject({ status: 200, query: '?a=1&b=%zz&c' })
    expect(send({ location }, { query: '?api+key=key-a' }).query).toBe('')
    expect(send({ location }, { query: '?api+key=' }).text).toContain('no API Key found')
    expect(send({ location }, { query: '' }).status).toBe(401)
  })

  it('may be a cookie, and the others stay', () => {
    const location = { cookie: { name: 'tg' } }
    const cookie = 'theme=dark; tg="key-a"; x=1; tg=other'
    expect(send({ location }, { headers: { cookie } })).toMatchObject({
      status: 200,
      headers: { cookie: 'theme=dark; x=1' },
    })
    expect(send({ location }, { headers: { cookie: 'tg=key-a' } }).headers).toEqual({})
    expect(send({ location }, { headers: { cookie: 'atg=key-a' } }).status).toBe(401)
  })

  it('may be an expression, and the header with the key is removed', () => {
    const location = { expression: 'request.headers["x-pair"].split(":")[1]' }
    const headers = { 'x-pair': 'ada:key-a', accept: '*/*' }
    expect(send({ location }, { headers, query: '?k=key-a&l=1' })).toMatchObject({
      status: 200,
      headers: { accept: '*/*' },
      query: '?l=1',
    })
    expect(send({ location }, {}).text).toContain('no API Key found')
    expect(send({ location: { expression: '7' } }, {}).text).toContain('no API Key found')
  })
})

describe('checking', () => {
  const mismatch = 'data did not match any variant of untagged enum LocalAPIKey'

  function issues(config: ApiKeyConfig): string[] {
    expect(apiKeySchema.safeParse(config).success).toBe(true)
    const found: string[] = []
    checkApiKey(config, (path, message) => found.push(`${path.join('.')}: ${message}`))
    return found
  }

  it('finds nothing wrong with good records', () => expect(issues({ keys })).toEqual([]))

  it('refuses an empty key and a malformed hash', () => {
    const bad = ['sha256:12', `sha256:${'g'.repeat(64)}`, 'a'.repeat(64), `md5:${'a'.repeat(64)}`, '']
    expect(issues({ keys: [{ key: '' }, ...bad.map((hash) => ({ keyHash: hash }))] })).toEqual([
      `keys.0.key: ${mismatch}: key must not be empty`,
      ...bad.map(
        (_, index) =>
          `keys.${index + 1}.keyHash: ${mismatch}: keyHash must be "sha256:" followed by 64 hexadecimal digits`,
      ),
    ])
  })

  it('refuses a key that no request could bring, without showing it', () => {
    const bad = [' padded ', 'two\nlines', 'clé', 'tab\t']
    const found = issues({ keys: [...bad.map((key) => ({ key })), { key: 'with a space' }] })
    expect(found).toEqual(
      bad.map(
        (_, index) =>
          `keys.${index}.key: ${mismatch}: key must be printable ASCII without leading or trailing spaces, as in a header`,
      ),
    )
  })

  it('finds the same key twice, in any form, without showing it', () => {
    expect(issues({ keys: [{ key: 'k' }, { key: 'other' }, { keyHash: keyHash('k') }] })).toEqual([
      'keys.2: the same key is in keys[0] already',
    ])
  })

  it('finds model patterns that match nothing they seem to', () => {
    const found = issues({ keys: [{ key: 'k', allowedModels: ['a*b', '*a*', 'ok*', '*'] }] })
    expect(found.map((issue) => issue.split(':')[0])).toEqual([
      'keys.0.allowedModels.0',
      'keys.0.allowedModels.1',
    ])
  })

  it('finds places where no key can be', () => {
    expect(issues({ keys, location: { header: { name: 'x y' } } })).toHaveLength(1)
    expect(issues({ keys, location: { cookie: { name: 'a;b' } } })).toHaveLength(1)
    expect(issues({ keys, location: { expression: 'apiKey.id' } })[0]).toContain('location.expression: ')
  })

  it.each([
    [
      'both forms',
      { key: 'a', keyHash: keyHash('a') },
      'exactly one of key, keyHash is allowed here; found both key and keyHash',
    ],
    ['no form', { metadata: {} }, 'exactly one of key, keyHash is required here; found none'],
    ['an unknown field', { key: 'a', budget: 5 }, 'unknown key `budget`'],
    ['a key that is no text', { key: 5 }, 'expected a string'],
  ])('names a record with %s as clients know it', (_, record, reason) => {
    const checked = check(apiKeySchema, { keys: [record] })
    const messages = checked.kind === 'mistakes' ? checked.mistakes.map((mistake) => mistake.message) : []
    expect(messages).toHaveLength(1)
    expect(messages[0]).toContain(`${mismatch}: ${reason}`)
  })
})
