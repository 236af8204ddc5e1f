/** `metadata` of expressions: values by name. */
export type Metadata = { readonly [name: string]: unknown }

/** Adds values to `metadata` of expressions. A later value replaces an earlier one of the same name. */
export function addMetadata(
  { facts }: { readonly facts: { metadata?: Metadata | undefined } },
  values: Metadata,
): void {
  facts.metadata = { ...facts.metadata, ...values }
}
