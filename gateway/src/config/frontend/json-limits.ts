import { defaultJsonLimits } from '../../lib/json/limits.ts'
import { integer, object, optional } from '../../schema/dsl.ts'

/** `frontendPolicies.http.json`. */
export const jsonLimits = object(
  {
    maxMembers: optional(
      integer(
        { doc: 'Most members of one object.', default: defaultJsonLimits.maxMembers },
        { min: 1, max: 1_000_000 },
      ),
    ),
    maxElements: optional(
      integer(
        {
          doc: 'Most objects, arrays and members of a body together. Ten times as many items of lists and members are allowed.',
          default: defaultJsonLimits.maxElements,
        },
        { min: 1, max: 1_000_000 },
      ),
    ),
    maxDepth: optional(
      integer(
        { doc: 'Most levels of nesting.', default: defaultJsonLimits.maxDepth },
        { min: 1, max: defaultJsonLimits.maxDepth },
      ),
    ),
  },
  {
    doc: 'Bounds on JSON bodies of LLM and MCP requests, checked before a body is parsed. A body that exceeds one is answered with 400.',
  },
)
