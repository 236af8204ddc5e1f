import { responseFields } from '../../../policies/direct-response.ts'
import { type Infer, object } from '../../../schema/dsl.ts'
import { orConditional } from './conditional.ts'
import { headerValues } from './transformation.ts'

const directResponse = object(
  { ...responseFields, headers: headerValues('Headers of the response.') },
  { doc: 'Response of the gateway.' },
)

/** `traffic.directResponse`. */
export const directResponseSchema = orConditional(directResponse, {
  doc: 'Responds to requests without a backend: to all, or to those of a condition.',
})

export type DirectResponse = Infer<typeof directResponse>
