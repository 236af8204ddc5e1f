import { expect, it } from 'vitest'
import { fixtureExchange } from '../../test/fixtures/pipeline.ts'
import { identifiesUser, ownerOf } from './owner.ts'

function certificate(subject: string, pem: string, subjectAltNames: string[] = []) {
  return { address: '127.0.0.1', port: 1, certificate: pem, issuer: 'CN=ca', subject, subjectAltNames }
}

const ownerWith = (facts: object) => ownerOf(fixtureExchange({}, facts))

it('clients with different certificates are different owners', () => {
  const owners = [
    certificate('CN=one', 'a'),
    certificate('CN=two', 'b'),
    certificate('', 'c', ['one.test']),
    certificate('', 'd'),
    certificate('', 'e'),
  ].map((source) => ownerWith({ source }))
  expect(new Set([...owners, ownerWith({})]).size).toBe(6)
})

it('a renewed certificate is the same owner, and a verified key takes precedence', () => {
  const source = certificate('CN=one', 'a')
  expect(ownerWith({ source })).toBe(ownerWith({ source: certificate('CN=one', 'b') }))
  const apiKey = { id: 'k' }
  expect(ownerWith({ source, apiKey })).toBe(ownerWith({ apiKey }))
})

it.each([
  [{ jwt: { iss: 'i', sub: 'ada', client_id: 'app' } }, true],
  [{ jwt: { iss: 'i', sid: 's', azp: 'app' } }, true],
  [{ jwt: { iss: 'i', client_id: 'app' } }, false],
  [{ jwt: { iss: 'i', sub: '', azp: 'app' } }, false],
  [{ jwt: { iss: 'i', azp: 'app' }, apiKey: { id: 'k' } }, true],
  [{ apiKey: { id: 'k' } }, true],
  [{}, false],
  [{ source: certificate('CN=job', 'a') }, false],
])('the identity %j is one user: %s', (facts, expected) => {
  expect(identifiesUser(fixtureExchange({}, facts))).toBe(expected)
})
