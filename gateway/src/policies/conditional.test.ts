import { describe, expect, it } from 'vitest'
import { fixtureExchange, throughPolicies } from '../../test/fixtures/pipeline.ts'
import type { Policy } from '../pipeline/policy.ts'
import { check } from '../schema/check.ts'
import { anyOfShapes, exactlyOne, integer, object, string } from '../schema/dsl.ts'
import {
  checkConditions,
  compileConditional,
  conditionalOr,
  conditionsOf,
  variantsOf,
} from './conditional.ts'

const variables = new Set(['request', 'jwt'])
const schema = conditionalOr(object({ status: integer({ doc: 'Status.' }) }, { doc: 'Response.' }))

type One = { status: number; condition?: string | undefined }

function compile(conditional: One[], policyOf = respond): Policy | undefined {
  return compileConditional({ conditional }, variables, policyOf)
}

function respond({ status }: One): Policy {
  return {
    name: 'respond',
    onRequest: () => ({ status, headers: {}, body: undefined }),
    onReply: (_, reply) => ({ ...reply, headers: { ...reply.headers, 'x-variant': String(status) } }),
    explain: () => ({ status }),
  }
}

function statusAt(policy: Policy | undefined, path: string): number {
  return throughPolicies([policy], fixtureExchange({ path })).status
}

const byPath = [
  { condition: 'request.path == "/a"', status: 401 },
  { condition: 'request.path.startsWith("/a")', status: 402 },
]

describe('a conditional policy', () => {
  it('is the first entry whose condition is true', () => {
    const policy = compile([...byPath, { status: 403 }])
    expect(['/a', '/ab', '/b'].map((path) => statusAt(policy, path))).toEqual([401, 402, 403])
  })

  it('has no effect if no condition is true', () => {
    expect(statusAt(compile(byPath), '/b')).toBe(200)
  })

  it('does not select an entry whose condition fails or is no boolean', () => {
    const policy = compile([
      { condition: 'jwt.sub == "x"', status: 401 },
      { condition: 'request.path', status: 402 },
      { status: 403 },
    ])
    expect(statusAt(policy, '/')).toBe(403)
  })

  it('sends the reply through the selected entry only', () => {
    const reply = throughPolicies([compile([...byPath, { status: 403 }])], fixtureExchange({ path: '/ab' }))
    expect(reply.headers).toEqual({ 'x-variant': '402' })
  })

  it('explains the selected entry', () => {
    const exchange = fixtureExchange({ path: '/ab' })
    expect(compile(byPath)?.select?.(exchange)?.explain?.(exchange)).toEqual({
      entry: 2,
      policy: { status: 402 },
    })
  })

  it('refuses a request on which a condition takes too much work', () => {
    const nested = 'request.headers.all(a, request.headers.all(b, request.headers.all(c, a + b + c != "x")))'
    const policy = compile([{ condition: nested, status: 401 }, { status: 200 }])
    const headers = Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`x-${index}`, 'v']))
    expect(throughPolicies([policy], fixtureExchange({ headers })).status).toBe(403)
  })

  it.each([
    'request.path.startsWith("/admin")',
    'variables().request.path.startsWith("/admin")',
    'request.pathAndQuery.startsWith("/admin")',
  ])('refuses a path that a lenient server reads as that of another entry: %s', (condition) => {
    const policy = compile([{ condition, status: 401 }, { status: 402 }])
    const statusWith = (path: string, pathVariants: string[]) =>
      throughPolicies([policy], { ...fixtureExchange({ path }), pathVariants }).status
    expect(statusWith('/%61dmin;x/users', ['/public', '/admin/users'])).toBe(400)
    expect(statusWith('/public;x', ['/public', '/other'])).toBe(402)
    expect(statusWith('/admin;x', ['/admin'])).toBe(401)
  })

  it('refuses such a path also if its own path selects no entry', () => {
    const policy = compile(byPath)
    const exchange = { ...fixtureExchange({ path: '/b' }), pathVariants: ['/a'] }
    expect(throughPolicies([policy], exchange).status).toBe(400)
  })

  it('permits other readings of a path that no condition reads', () => {
    const policy = compile([{ condition: 'jwt.sub == "x"', status: 401 }, { status: 402 }])
    const exchange = { ...fixtureExchange({ path: '/b' }), pathVariants: ['/a'] }
    expect(throughPolicies([policy], exchange).status).toBe(402)
  })

  it('may be a single policy', () => {
    expect(statusAt(compileConditional({ status: 410 }, variables, respond), '/')).toBe(410)
  })

  it('is none if no variant has an effect', () => {
    expect(compileConditional({ conditional: byPath }, variables, () => undefined)).toBeUndefined()
  })
})

describe('the schema of a conditional policy', () => {
  it.each([[{ status: 404 }], [{ conditional: [{ status: 404 }] }], [{ conditional: byPath }]])(
    'accepts %j',
    (value) => {
      expect(check(schema, value).kind).toBe('valid')
    },
  )

  it.each([
    [{ conditional: [] }, 'must not be empty'],
    [{ conditional: Array.from({ length: 65 }, () => ({ status: 1 })) }, 'expected at most 64 items'],
    [{ conditional: [{ status: 'x' }] }, 'expected a whole number, got the string "x"'],
    [
      { conditional: [{ conditions: 'true', status: 1 }] },
      'unknown key `conditions`, did you mean `condition`?',
    ],
  ])('rejects %j', (value, message) => {
    const checked = check(schema, value)
    expect(checked).toMatchObject({ kind: 'mistakes', mistakes: [{ message }] })
  })

  it('extends the alternatives of a choice and objects with exactly one of some keys', () => {
    const text = (doc: string) => string({ doc })
    const choice = conditionalOr(
      anyOfShapes(
        [
          exactlyOne({ a: text('A.'), b: text('B.') }, {}, { doc: 'One.' }),
          object({ c: text('C.') }, { doc: 'C.' }),
        ],
        {
          doc: 'Choice.',
        },
      ),
    )
    const kind = (value: object) => check(choice, { conditional: [value] }).kind
    expect(kind({ condition: 'true', a: 'x' })).toBe('valid')
    expect(kind({ condition: 'true', c: 'x' })).toBe('valid')
    expect(kind({ condition: 'true', a: 'x', b: 'x' })).toBe('mistakes')
  })
})

describe('the checks of conditions', () => {
  const mistakes = (conditional: One[]) => {
    const found: string[] = []
    checkConditions({ conditional }, variables, (path, message) =>
      found.push(`${path.join('.')}: ${message}`),
    )
    return found
  }

  it('require a condition in every entry but the last', () => {
    expect(mistakes([{ status: 1 }, { status: 2 }])).toEqual([
      'conditional.0.condition: must be set: only the last entry may match every request',
    ])
    expect(mistakes([...byPath, { status: 2 }])).toEqual([])
  })

  it('compile each condition', () => {
    expect(mistakes([{ condition: 'nothing', status: 1 }])).toHaveLength(1)
  })

  it('list variants and conditions with their paths', () => {
    const config = { conditional: [...byPath, { status: 3 }] }
    expect(variantsOf(config).map(({ path }) => path)).toEqual([
      ['conditional', 0],
      ['conditional', 1],
      ['conditional', 2],
    ])
    expect(conditionsOf(config).map(({ path }) => path.join('.'))).toEqual([
      'conditional.0.condition',
      'conditional.1.condition',
    ])
    expect(variantsOf(undefined)).toEqual([])
  })
})
