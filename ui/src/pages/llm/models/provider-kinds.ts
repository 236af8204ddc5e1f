import { isObject } from '../../../schema-form/model/value.ts'

/** Kinds of providers that a schema of models or of shared providers suggests. Others are valid. */
export function providerKinds(schema: object): readonly string[] {
  const properties = 'properties' in schema ? schema.properties : undefined
  const provider = isObject(properties) ? properties['provider'] : undefined
  const options = isObject(provider) && Array.isArray(provider['anyOf']) ? provider['anyOf'] : [provider]
  const kinds = options.flatMap((option: unknown) =>
    isObject(option) && option['type'] === 'string' && Array.isArray(option['examples'])
      ? option['examples'].map(String)
      : [],
  )
  return [...new Set(kinds)]
}
