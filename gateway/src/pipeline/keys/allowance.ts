import { enumeration, exactlyOne, integer, optional, type Schema } from '../../schema/dsl.ts'

/** Milliseconds of the units of allowances. */
export const unitMs = { Seconds: 1_000, Minutes: 60_000, Hours: 3_600_000 } as const

/** A limit as an allowance per unit of time, with these further fields. */
export function allowanceSchema<Fields extends Record<string, Schema>>(fields: Fields) {
  return exactlyOne(
    {
      requests: integer({ doc: 'Requests per unit.', example: 100 }, { min: 1 }),
      tokens: integer(
        { doc: 'LLM tokens per unit, input and output together.', example: 100_000 },
        { min: 1 },
      ),
    },
    {
      unit: enumeration(['Seconds', 'Minutes', 'Hours'], { doc: 'Unit of time.' }),
      burst: optional(
        integer({ doc: 'Additional allowance, refilled while unused.', default: 0 }, { min: 0 }),
      ),
      ...fields,
    },
    { doc: 'Allowance per second, minute or hour.' },
  )
}
