import type { ApiKind } from '../../objects/kinds.ts'

/** Place of an object in the API; `namespace` is undefined for cluster-scoped kinds. */
export type ObjectPlace = {
  readonly kind: ApiKind
  readonly namespace?: string | undefined
  readonly name: string
  readonly subresource?: 'status' | 'scale' | undefined
}

/** Path of the objects of a kind, in one namespace or in all. */
export function collectionPath({ group, version, plural }: ApiKind, namespace?: string): string {
  const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`
  return namespace === undefined
    ? `${root}/${plural}`
    : `${root}/namespaces/${encodeURIComponent(namespace)}/${plural}`
}

export function objectPath({ kind, namespace, name, subresource }: ObjectPlace): string {
  const path = `${collectionPath(kind, namespace)}/${encodeURIComponent(name)}`
  return subresource === undefined ? path : `${path}/${subresource}`
}
