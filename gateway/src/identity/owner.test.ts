import { expect, it } from 'vitest'
import { fixtureExchange } from '../../test/fixtures/pipeline.ts'
import { identifiesUser } from './owner.ts'

it.each([
  [{ jwt: { iss: 'i', sub: 'ada', client_id: 'app' } }, true],
  [{ jwt: { iss: 'i', sid: 's', azp: 'app' } }, true],
  [{ jwt: { iss: 'i', client_id: 'app' } }, false],
  [{ jwt: { iss: 'i', sub: '', azp: 'app' } }, false],
  [{ jwt: { iss: 'i', azp: 'app' }, apiKey: { id: 'k' } }, true],
  [{ apiKey: { id: 'k' } }, true],
])('the identity %j is one user: %s', (facts, expected) => {
  expect(identifiesUser(fixtureExchange({}, facts))).toBe(expected)
})
