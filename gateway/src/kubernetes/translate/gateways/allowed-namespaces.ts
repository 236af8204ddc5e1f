import type { Namespace } from '../../objects/core.ts'
import type { GatewayListener, LabelSelector } from '../../objects/gateway-api.ts'
import type { Memo } from '../backends/memo.ts'
import { matchesSelector, selectorMistake } from './label-selector.ts'

/** The namespaces whose routes may attach to a listener, as data: equal data allow equal namespaces. */
export type AllowedNamespaces =
  | { readonly kind: 'all' }
  | { readonly kind: 'one'; readonly namespace: string }
  | {
      readonly kind: 'selected'
      readonly selector: LabelSelector
      /** Namespaces for which the selector has another result than for a namespace without labels; sorted. */
      readonly exceptions: readonly string[]
    }
  | { readonly kind: 'invalid'; readonly message: string }

/** Reads `allowedRoutes.namespaces` of a listener of a Gateway in `namespace`. */
export function readAllowedNamespaces(
  { allowedRoutes }: GatewayListener,
  namespace: string,
  namespaces: ReadonlyMap<string, Namespace>,
  memo: Memo,
): AllowedNamespaces {
  const { from = 'Same', selector } = allowedRoutes?.namespaces ?? {}
  if (from === 'All') return { kind: 'all' }
  if (from === 'Same') return { kind: 'one', namespace }
  const path = 'allowedRoutes.namespaces'
  if (from !== 'Selector') {
    return { kind: 'invalid', message: `${path}.from must be All, Same or Selector, got "${from}"` }
  }
  if (selector === undefined) {
    return { kind: 'invalid', message: `${path}.selector must be set with from: Selector` }
  }
  const mistake = selectorMistake(selector)
  if (mistake !== undefined) return { kind: 'invalid', message: `${path}.selector.${mistake}` }
  // Up to 64 listeners evaluate every namespace.
  const exceptions = memo(selector, 'exceptions', [namespaces], () => exceptionsOf(selector, namespaces))
  return { kind: 'selected', selector, exceptions }
}

function exceptionsOf(selector: LabelSelector, namespaces: ReadonlyMap<string, Namespace>): string[] {
  return [...namespaces.values()]
    .filter(({ metadata: { name, labels } }) => matches(selector, name, labels) !== matches(selector, name))
    .map(({ metadata: { name } }) => name)
    .sort()
}

/** Returns the check of a namespace. A namespace without object has no labels but its name. */
export function compileAllowedNamespaces(allowed: AllowedNamespaces): (namespace: string) => boolean {
  switch (allowed.kind) {
    case 'all':
      return () => true
    case 'one':
      return (namespace) => namespace === allowed.namespace
    case 'invalid':
      return () => false
    case 'selected': {
      const exceptions = new Set(allowed.exceptions)
      return (namespace) => matches(allowed.selector, namespace) !== exceptions.has(namespace)
    }
  }
}

/** Label of each namespace, set by the API server; manifests cannot replace it. */
const nameLabel = 'kubernetes.io/metadata.name'

function matches(selector: LabelSelector, name: string, labels: Readonly<Record<string, string>> = {}) {
  return matchesSelector(selector, { ...labels, [nameLabel]: name })
}
