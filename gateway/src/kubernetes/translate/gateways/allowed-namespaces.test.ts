import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Namespace } from '../../objects/core.ts'
import type { GatewayListener, LabelSelector } from '../../objects/gateway-api.ts'
import { createMemo } from '../backends/memo.ts'
import { compileAllowedNamespaces, readAllowedNamespaces } from './allowed-namespaces.ts'
import { matchesSelector } from './label-selector.ts'

const label = fc.constantFrom('a', 'b', 'c')
const labels = fc.dictionary(label, fc.constantFrom('1', '2', ''), { maxKeys: 3 })
const expression = fc.oneof(
  fc.record({
    key: label,
    operator: fc.constantFrom('In', 'NotIn'),
    values: fc.array(fc.constantFrom('1', '2', ''), { minLength: 1, maxLength: 2 }),
  }),
  fc.record({ key: label, operator: fc.constantFrom('Exists', 'DoesNotExist') }),
)
const selector: fc.Arbitrary<LabelSelector> = fc.record({
  matchLabels: labels,
  matchExpressions: fc.array(expression, { maxLength: 3 }),
})

const listenerFor = (from: string, chosen?: LabelSelector): GatewayListener => ({
  name: 'http',
  port: 80,
  protocol: 'HTTP',
  allowedRoutes: { namespaces: { from, ...(chosen && { selector: chosen }) } },
})

function namespacesOf(found: Readonly<Record<string, Readonly<Record<string, string>>>>) {
  return new Map(
    Object.entries(found).map(([name, own]): [string, Namespace] => [
      name,
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels: own } },
    ]),
  )
}

describe('allowed namespaces', () => {
  it('are those that the selector matches, whether they have an object or not', () => {
    const clusters = fc.dictionary(fc.constantFrom('one', 'two', 'three'), labels)
    fc.assert(
      fc.property(selector, clusters, (chosen, cluster) => {
        const read = readAllowedNamespaces(
          listenerFor('Selector', chosen),
          'one',
          namespacesOf(cluster),
          createMemo(),
        )
        const allows = compileAllowedNamespaces(read)
        for (const name of ['one', 'two', 'three', 'absent']) {
          const own = { 'kubernetes.io/metadata.name': name, ...cluster[name] }
          expect(allows(name)).toBe(matchesSelector(chosen, own))
        }
      }),
    )
  })

  it('have equal data while labels outside the selector change', () => {
    const chosen = { matchLabels: { a: '1' } }
    const read = (own: Readonly<Record<string, string>>) =>
      readAllowedNamespaces(listenerFor('Selector', chosen), 'one', namespacesOf({ one: own }), createMemo())
    expect(read({ a: '1', b: '1' })).toEqual(read({ a: '1', b: '2' }))
    expect(read({ a: '1' })).not.toEqual(read({ a: '2' }))
  })

  it('depend on the name of the namespace, whatever its labels', () => {
    const chosen = { matchLabels: { 'kubernetes.io/metadata.name': 'one' } }
    const namespaces = namespacesOf({ two: { 'kubernetes.io/metadata.name': 'one' } })
    const read = readAllowedNamespaces(listenerFor('Selector', chosen), 'one', namespaces, createMemo())
    const allows = compileAllowedNamespaces(read)
    expect([allows('one'), allows('two')]).toEqual([true, false])
  })

  it('are the namespace of the Gateway by default', () => {
    const { allowedRoutes, ...listener } = listenerFor('All')
    const allows = compileAllowedNamespaces(readAllowedNamespaces(listener, 'one', new Map(), createMemo()))
    expect([allows('one'), allows('two')]).toEqual([true, false])
  })

  it('are none for values that are not supported', () => {
    for (const listener of [listenerFor('None'), listenerFor('Selector')]) {
      const read = readAllowedNamespaces(listener, 'one', new Map(), createMemo())
      expect(read.kind).toBe('invalid')
      expect(compileAllowedNamespaces(read)('one')).toBe(false)
    }
  })
})
