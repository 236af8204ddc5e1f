import fc from 'fast-check'
import { expect, it } from 'vitest'
import { authorityName, labelValue, proxyName, sessionSecretName } from './names.ts'

const label = fc.stringMatching(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/)
const gateways = fc
  .record({ name: fc.array(label, { minLength: 1, maxLength: 4 }), gatewayClassName: label })
  .map(({ name, gatewayClassName }) => ({
    metadata: {
      name: name
        .join('.')
        .slice(0, 253)
        .replace(/[-.]+$/, ''),
    },
    spec: { gatewayClassName },
  }))

it('creates names of Services and labels from every name of a Gateway', () => {
  fc.assert(
    fc.property(gateways, (gateway) => {
      for (const name of [proxyName(gateway), sessionSecretName(gateway), authorityName(gateway)])
        expect(name).toMatch(/^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$/)
      expect(labelValue(gateway.metadata.name)).toMatch(/^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$/)
    }),
  )
})

it('creates distinct names for long names with the same start', () => {
  const long = (end: string) => ({
    metadata: { name: `${'x'.repeat(80)}${end}` },
    spec: { gatewayClassName: 'c' },
  })
  expect(proxyName(long('a'))).not.toBe(proxyName(long('b')))
})
