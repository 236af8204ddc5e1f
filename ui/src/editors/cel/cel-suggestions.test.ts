import { expect, it } from 'vitest'
import { suggestCel, variablesOf } from './cel-suggestions.ts'

const vocabulary = {
  scopes: [
    {
      name: 'http',
      doc: '',
      variables: [
        {
          name: 'request',
          doc: '',
          members: [
            { name: 'path', doc: '' },
            { name: 'headers', doc: '', open: true },
          ],
        },
        { name: 'jwt', doc: '', open: true },
      ],
    },
    { name: 'llm', doc: '', variables: [{ name: 'llmRequest', doc: '', open: true }] },
  ],
  functions: [
    { name: 'has', forms: ['has(x)'] },
    { name: 'startsWith', forms: ['x.startsWith(a1)'] },
  ],
}

it.each<[string, readonly string[] | undefined]>([
  ['', ['request', 'jwt', 'has']],
  ['jwt.sub == "a" && re', ['request', 'jwt', 'has']],
  ['request.', ['path', 'headers', 'startsWith']],
  ['request.path.', ['startsWith']],
  ['has(request.', ['path', 'headers', 'startsWith']],
  ['f(x).', ['startsWith']],
  ['"request.', undefined],
])('after %j', (text, expected) => {
  const variables = variablesOf(vocabulary, undefined, 'http')
  expect(
    suggestCel(text, text.length, variables, vocabulary.functions)?.items.map(({ label }) => label),
  ).toEqual(expected)
})

it('variables are those of the roots, else of the scope, else all', () => {
  const names = (roots: readonly string[] | undefined, scope?: string) =>
    variablesOf(vocabulary, roots, scope).map(({ name }) => name)
  expect(names(['jwt', 'request.path'])).toEqual(['request', 'jwt'])
  expect(names(undefined, 'llm')).toEqual(['llmRequest'])
  expect(names(undefined)).toEqual(['request', 'jwt', 'llmRequest'])
})
