import { describe, expect, it } from 'vitest'
import { fixtureContext, fixtureExchange, textOf, throughPolicies } from '../../test/fixtures/pipeline.ts'
import type { Exchange, Facts } from '../pipeline/exchange.ts'
import {
  type AuthorizationConfig,
  authorizationSchema,
  checkAuthorization,
  compileAuthorization,
  compileModelAuthorization,
} from './authorization.ts'

const context = fixtureContext()
const variables = new Set(['request', 'source', 'jwt', 'apiKey', 'llmRequest', 'llm'])
type Rules = AuthorizationConfig['rules']

function decide(
  rules: Rules,
  facts: Partial<Facts> = {},
): { status: number; exchange: Exchange; body: string } {
  const { beforeBody, afterBody } = compileAuthorization({ rules }, context, {
    variables: variables,
    scope: 'llm',
  })
  const exchange = fixtureExchange({}, facts)
  const reply = throughPolicies([beforeBody, afterBody], exchange)
  return { status: reply.status, exchange, body: textOf(reply) }
}

function statusOf(rules: Rules, facts: Partial<Facts> = {}): number {
  return decide(rules, facts).status
}

const admin = { apiKey: { id: '1', group: 'admin' } }
const trial = { apiKey: { id: '2', group: 'trial' } }

describe('rules', () => {
  it('allow everything when there are none', () => expect(statusOf([])).toBe(200))

  it('that are plain expressions allow, and one of them must be true', () => {
    const rules = ['apiKey.group == "admin"', 'apiKey.group == "staff"']
    expect(statusOf(rules, admin)).toBe(200)
    expect(statusOf(rules, trial)).toBe(403)
  })

  it('that deny win over rules that allow', () => {
    const rules = [{ allow: 'true' }, { deny: 'apiKey.group == "trial"' }]
    expect(statusOf(rules, admin)).toBe(200)
    expect(statusOf(rules, trial)).toBe(403)
  })

  it('that require must all be true regardless of allow rules', () => {
    const rules = [{ require: 'has(apiKey.id)' }, { require: 'apiKey.group == "admin"' }, 'true']
    expect(statusOf(rules, admin)).toBe(200)
    expect(statusOf(rules, trial)).toBe(403)
  })

  it('allow by default when they only deny or require', () => {
    expect(statusOf([{ deny: 'apiKey.group == "trial"' }, { require: 'true' }], admin)).toBe(200)
  })

  it('that cannot be evaluated refuse, of every kind', () => {
    expect(statusOf([{ deny: 'apiKey.missing == "x"' }], admin)).toBe(403)
    expect(statusOf([{ require: 'apiKey.missing == "x"' }], admin)).toBe(403)
    expect(statusOf([{ allow: 'apiKey.missing == "x"' }], admin)).toBe(403)
    expect(statusOf([{ deny: 'jwt.sub == "x"' }], admin)).toBe(403)
  })

  it('that cannot be evaluated leave it to another rule to allow', () => {
    expect(statusOf(['apiKey.missing == "x"', 'apiKey.group == "admin"'], admin)).toBe(200)
  })

  it('that yield no boolean refuse', () => {
    expect(statusOf([{ deny: 'apiKey.group' }], admin)).toBe(403)
    expect(statusOf([{ allow: '1' }], admin)).toBe(403)
  })
})

describe('a refusal', () => {
  it('reports only the denial to the client', () => {
    const { body } = decide([{ deny: 'true' }])
    expect(JSON.parse(body)).toEqual({
      error: {
        message: 'authorization failed',
        type: 'invalid_request_error',
        param: null,
        code: 'authorization_failed',
      },
    })
  })

  it('names the rule for the log', () => {
    const rules: Rules = ['true', { deny: 'apiKey.group == "trial"' }, { require: 'has(apiKey.name)' }]
    expect(decide(rules, trial).exchange.log.refusedBy).toBe('authorization: deny rule 2')
    expect(decide(rules, admin).exchange.log.refusedBy).toBe('authorization: require rule 3')
    expect(decide(['false']).exchange.log.refusedBy).toBe('authorization: no allow rule holds')
  })

  it('is counted by rule', () => {
    const refusals = () => context.decisions.get('llm: require rule 2 refused') ?? 0
    const before = refusals()
    decide(['true', { require: 'apiKey.group == "admin"' }], trial)
    decide(['true', { require: 'apiKey.group == "admin"' }], admin)
    expect(refusals()).toBe(before + 1)
  })
})

describe('rules on the body', () => {
  const big = { llmRequest: { model: 'big' }, ...trial }

  function stepsOf(rules: Rules) {
    const { beforeBody, afterBody } = compileAuthorization({ rules }, context, {
      variables: variables,
      scope: 'llm',
    })
    return { before: beforeBody !== undefined, after: afterBody !== undefined }
  }

  it('wait for it, others do not', () => {
    expect(stepsOf([{ deny: 'apiKey.group == "trial"' }])).toEqual({ before: true, after: false })
    expect(stepsOf([{ deny: 'llmRequest.model == "big"' }])).toEqual({ before: false, after: true })
    expect(stepsOf([{ require: 'has(apiKey.id)' }, { deny: 'llm.streaming' }])).toEqual({
      before: true,
      after: true,
    })
  })

  it('refuse before the body is read where they can', () => {
    const { beforeBody } = compileAuthorization(
      { rules: [{ deny: 'apiKey.group == "trial"' }, 'llmRequest.model == "big"'] },
      context,
      { variables, scope: 'llm' },
    )
    expect(throughPolicies([beforeBody], fixtureExchange({}, trial)).status).toBe(403)
    expect(throughPolicies([beforeBody], fixtureExchange({}, admin)).status).toBe(200)
  })

  it('keep the allow rules one decision', () => {
    const rules = ['apiKey.group == "admin"', 'llmRequest.model == "big"']
    expect(stepsOf(rules)).toEqual({ before: false, after: true })
    expect(statusOf(rules, big)).toBe(200)
    expect(statusOf(rules, { ...big, llmRequest: { model: 'small' } })).toBe(403)
    expect(statusOf(rules, { llmRequest: { model: 'small' }, ...admin })).toBe(200)
  })

  it('see an empty body for requests without one, and deny if the evaluation fails', () => {
    expect(statusOf([{ deny: 'has(llmRequest.model) && llmRequest.model == "big"' }])).toBe(200)
    expect(statusOf([{ deny: 'llmRequest.model == "big"' }])).toBe(403)
  })
})

describe('checking', () => {
  function issues(rules: Rules): string[] {
    const found: string[] = []
    checkAuthorization({ rules }, variables, (path, message) => found.push(`${path.join('.')}: ${message}`))
    return found
  }

  it('finds expressions that do not compile, where they are', () => {
    const found = issues(['true', '1 +', { deny: 'nobody.id == 1' }])
    expect(found).toHaveLength(2)
    expect(found[0]).toMatch(/^rules\.1: .+column/)
    expect(found[1]).toMatch(/^rules\.2\.deny: .*nobody/)
  })

  it('leaves rules of no kind and of two kinds to the schema', () => {
    for (const rule of [{}, { allow: 'true', deny: 'true' }, 5, { permit: 'true' }]) {
      expect(authorizationSchema.safeParse({ rules: [rule] }).success).toBe(false)
    }
    expect(authorizationSchema.safeParse({ rules: ['true', { deny: 'true' }] }).success).toBe(true)
  })
})

describe('rules over large bodies', () => {
  const large = (characters: number) => ({ llmRequest: { text: 'words '.repeat(characters / 6) } })
  const rule = 'llmRequest.text.contains("never")'
  const log = '(a rule takes too much work on this request)'

  it.each([
    [{ deny: rule }, 'deny rule 1'],
    [{ require: `!${rule}` }, 'require rule 1'],
    [{ allow: `!${rule}` }, 'no allow rule holds'],
  ])('refuse beyond the work of a rule: %o', (given, name) => {
    const { status, exchange } = decide([given], large(6_000_000))
    expect(status).toBe(403)
    expect(exchange.log.refusedBy).toBe(`authorization: ${name} ${log}`)
  })

  it('run in turns, each with work of its own', async () => {
    const rules = Array.from({ length: 12 }, () => ({ deny: rule }))
    const answerTo = async (last: Rules) => {
      const { afterBody } = compileAuthorization({ rules: [...rules, ...last] }, context, {
        variables: variables,
        scope: 'llm',
      })
      const exchange = fixtureExchange({}, large(3_000_000))
      const outcome = afterBody?.onRequest?.(exchange)
      expect(outcome).toBeInstanceOf(Promise)
      return { reply: await outcome, refusedBy: exchange.log.refusedBy }
    }
    expect((await answerTo([])).reply).toBeUndefined()
    const denied = await answerTo([{ deny: 'llmRequest.text.startsWith("words")' }])
    expect(denied).toMatchObject({ reply: { status: 403 }, refusedBy: 'authorization: deny rule 13' })
  })
})

it('rules of models refuse a call of another configuration', () => {
  const rules = compileModelAuthorization(
    [{ scope: 'model a', config: { rules: ['true'] } }],
    context,
    variables,
  )
  const exchange = fixtureExchange()
  exchange.llm = { ...({} as NonNullable<typeof exchange.llm>), rulesOfModels: () => [{ rules: [] }] }
  expect(() => rules?.onRequest?.(exchange)).toThrow('were not compiled')
})

describe('explain', () => {
  it('describes the rules of each step with scope and result', () => {
    const rules = [{ deny: 'apiKey.group == "trial"' }, { require: 'has(llmRequest.model)' }, 'jwt.admin']
    const options = { variables, scope: 'llm' }
    const { beforeBody, afterBody } = compileAuthorization({ rules }, context, options)
    const exchange = fixtureExchange({}, admin)
    expect(beforeBody?.explain?.(exchange)).toEqual({
      scope: 'llm',
      rules: [
        { rule: 'deny rule 1', expression: 'apiKey.group == "trial"', value: false, refuses: false },
        { rule: 'allow rule 3', expression: 'jwt.admin', error: 'jwt has no value', refuses: false },
      ],
    })
    expect(afterBody?.explain?.(exchange)).toMatchObject({
      rules: [{ rule: 'require rule 2', value: false, refuses: true }],
    })
  })
})
