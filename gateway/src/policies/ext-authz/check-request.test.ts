import { expect, it } from 'vitest'
import { fixtureExchange } from '../../../test/fixtures/pipeline.ts'
import { compileCheckRequest } from './check-request.ts'

const certificate = { certificate: 'PEM', issuer: 'CN=ca', subject: 'CN=job', subjectAltNames: [] }
const identity = { trustDomain: 'd', namespace: 'n', serviceAccount: 's' }
const spiffeId = 'spiffe://d/ns/n/sa/s'

it.each([
  [spiffeId, { ...certificate, subjectAltNames: ['job.test', spiffeId], spiffeId, identity }],
  ['job.test', { ...certificate, subjectAltNames: ['job.test'] }],
  ['CN=job', certificate],
  ['', {}],
])('the principal of the source is %j', (principal, more) => {
  const source = { address: '127.0.0.1', port: 1, ...more }
  const exchange = fixtureExchange({}, { source })
  const encode = compileCheckRequest({ host: 'service:1' }, new Set(['request']))
  const bytes = Buffer.from(encode({ exchange, facts: exchange.facts, body: undefined }))
  // Field 4 of the peer, behind its address and port (1).
  const field = Buffer.from([0x18, 1, 0x22, principal.length])
  const found = bytes.includes(Buffer.concat([field, Buffer.from(principal)]))
  expect(principal === '' ? bytes.includes('CN=') : found).toBe(principal !== '')
})
