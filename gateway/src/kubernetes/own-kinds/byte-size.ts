import { anyOfShapes, integer, type Schema, string } from '../../schema/dsl.ts'

/** Bytes, as a number or as a quantity of Kubernetes. */
export type ByteSize = number | string

const unitBytes: Readonly<Record<string, number>> = {
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
}

/** Schema of a size in bytes. */
export function byteSizeSchema({
  doc,
  default: byDefault,
}: {
  doc: string
  default?: string
}): Schema<ByteSize> {
  return anyOfShapes(
    [
      integer({ doc: 'Bytes.' }, { min: 1, max: Number.MAX_SAFE_INTEGER }),
      string({ doc: 'Quantity such as `64Ki` or `2Mi`.' }, { max: 32 }),
    ],
    { doc, example: '64Ki', ...(byDefault === undefined ? {} : { default: byDefault }) },
  )
}

/** The bytes of a size; undefined if the text is not a whole number of bytes. */
export function bytesOf(size: ByteSize): number | undefined {
  if (typeof size === 'number') return size
  const [, digits = '', unit = ''] = /^([0-9]{1,12})([kMG]|[KMG]i)?$/.exec(size) ?? []
  const bytes = Number(digits) * (unitBytes[unit] ?? 1)
  return digits !== '' && bytes > 0 && Number.isSafeInteger(bytes) ? bytes : undefined
}
