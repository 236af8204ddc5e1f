import { describe, expect, it } from 'vitest'
import { fixtureExchange } from '../../../../test/fixtures/pipeline.ts'
import { checkModelTransformation, compileModelTransformation } from './transformation.ts'

const variables = new Set(['llmRequest', 'apiKey'])

function transform(transformation: Record<string, string>, model = 'a/b') {
  const { facts } = fixtureExchange()
  return compileModelTransformation(transformation, variables)(
    { ...facts, llmRequest: { model: 'virtual', temperature: 2 } },
    model,
  )
}

describe('the transformation of a model', () => {
  it('computes the model of the requested name', () => {
    expect(transform({ model: 'llmRequest.model.substring(2)' }).model).toBe('b')
  })

  it('retains the model if the expression fails or is no text', () => {
    expect(transform({ model: 'llmRequest.none' }).model).toBeUndefined()
    expect(transform({ model: '1' }).model).toBeUndefined()
    expect(transform({ model: '""' }).model).toBeUndefined()
  })

  it('computes fields as JSON and removes those whose expression fails', () => {
    const { set, removed } = transform({
      temperature: 'llmRequest.temperature < 1.0 ? llmRequest.temperature : 1.0',
      metadata: '{"large": 9007199254740993}',
      user: 'apiKey.user',
    })
    expect([...set]).toEqual([
      ['temperature', '1'],
      ['metadata', '{"large":9007199254740993}'],
    ])
    expect([...removed]).toEqual(['user'])
  })

  it('rejects content and unknown variables', () => {
    const found: string[] = []
    checkModelTransformation({ messages: '[]', user: 'nothing' }, variables, (path) =>
      found.push(path.join('.')),
    )
    expect(found).toEqual(['messages', 'user'])
  })
})
