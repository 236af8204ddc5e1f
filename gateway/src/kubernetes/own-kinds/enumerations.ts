import { enumeration, type FieldMeta, type Schema } from '../../schema/dsl.ts'

// Enumerations start with an upper-case letter in the cluster and with a lower-case letter in the file.

/** Schema of an enumeration of the file in the spelling of the cluster. */
export function clusterEnumeration<const V extends string>(
  values: readonly [V, ...V[]],
  meta: FieldMeta,
): Schema<Capitalize<V>> {
  const [first, ...others] = values
  return enumeration([capitalize(first), ...others.map(capitalize)], meta)
}

/** Returns a value of the file for a value of the cluster. */
export function fileValue<V extends string>(value: V): Uncapitalize<V> {
  // The first letter changes, as in the type.
  return `${value.charAt(0).toLowerCase()}${value.slice(1)}` as Uncapitalize<V>
}

function capitalize<V extends string>(value: V): Capitalize<V> {
  // The first letter changes, as in the type.
  return `${value.charAt(0).toUpperCase()}${value.slice(1)}` as Capitalize<V>
}
