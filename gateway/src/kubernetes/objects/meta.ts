/** Metadata of an object; in manifests only `name` is required. */
export type ObjectMeta = {
  readonly name: string
  /** Undefined for cluster-scoped kinds only: manifests without one belong to `default`. */
  readonly namespace?: string | undefined
  readonly uid?: string | undefined
  readonly resourceVersion?: string | undefined
  readonly generation?: number | undefined
  /** RFC 3339, in seconds. */
  readonly creationTimestamp?: string | undefined
  readonly deletionTimestamp?: string | undefined
  readonly labels?: Readonly<Record<string, string>> | undefined
  readonly annotations?: Readonly<Record<string, string>> | undefined
  readonly ownerReferences?: readonly OwnerReference[] | undefined
}

export type OwnerReference = {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly uid: string
  readonly controller?: boolean | undefined
}

/** An object of the API. Objects are never modified: a changed object is another object. */
export type ObjectOf<Kind extends string, Spec, Status = unknown> = {
  readonly apiVersion: string
  readonly kind: Kind
  readonly metadata: ObjectMeta
  readonly spec: Spec
  readonly status?: Status | undefined
}

/** Key of an object among those of its kind: `<namespace>/<name>`, or `<name>` for cluster-scoped kinds. */
export type ObjectKey = string

export function keyOf({ metadata: { namespace, name } }: { readonly metadata: ObjectMeta }): ObjectKey {
  return namespace === undefined ? name : `${namespace}/${name}`
}

/**
 * Compares objects by precedence in the Gateway API: the older first, then by `<namespace>/<name>`. Objects
 * without a time follow the others.
 */
export function compareByAge(a: { readonly metadata: ObjectMeta }, b: { readonly metadata: ObjectMeta }) {
  const left = a.metadata.creationTimestamp ?? unknownTime
  const right = b.metadata.creationTimestamp ?? unknownTime
  if (left !== right) return left < right ? -1 : 1
  const [first, second] = [keyOf(a), keyOf(b)]
  return first === second ? 0 : first < second ? -1 : 1
}

/** After every RFC 3339 time, as text. */
const unknownTime = '~'
