import {
  enumeration,
  type Infer,
  jsonObject,
  list,
  map,
  name,
  number,
  object,
  optional,
} from '../../../../schema/dsl.ts'
import type { ReportIssue } from '../../../../schema/report.ts'
import type { NamedBackend } from '../../../../upstream/config.ts'
import { failureModeField } from '../service/config.ts'
import { checkTarget, targetSchema } from '../service/target.ts'

/** Fields without servers and enumerations. */
export const presidioFields = {
  language: optional(name({ doc: 'Language of the texts, as the analyzer names it.', default: 'en' })),
  entities: optional(
    list(
      name({ doc: 'Type of an entity.', example: 'PHONE_NUMBER' }),
      { doc: 'Types of entities that are searched.', default: 'all types of the analyzer' },
      { min: 1, max: 256 },
    ),
  ),
  scoreThreshold: optional(
    number({ doc: 'Lowest score of an entity.', default: 0, example: 0.5 }, { min: 0, max: 1 }),
  ),
  anonymizers: optional(
    map(jsonObject({ doc: 'Operator and its parameters.' }), {
      doc: 'Operators of the anonymizer by type of entity, or `DEFAULT`.',
      example: { DEFAULT: { type: 'replace', new_value: '<redacted>' } },
    }),
  ),
}

/** `presidio`: https://microsoft.github.io/presidio/api-docs/api-docs.html. */
export const presidioSchema = object(
  {
    analyzer: targetSchema({
      doc: 'Server of the analyzer, which finds entities.',
      example: 'localhost:5002',
    }),
    anonymizer: optional(
      targetSchema({
        doc: 'Server of the anonymizer, which replaces the entities. Without it, the gateway replaces them by their types, for example `<PERSON>`.',
        example: 'localhost:5001',
      }),
    ),
    ...presidioFields,
    action: optional(
      enumeration(['mask', 'reject', 'audit'], {
        doc: 'Action on content with an entity; `audit` only records it.',
        default: 'mask',
      }),
    ),
    ...failureModeField,
  },
  {
    doc: 'Finds personal data with Microsoft Presidio, and masks it or rejects the content.',
    example: { analyzer: { host: 'localhost:5002' } },
  },
)

export type PresidioConfig = Infer<typeof presidioSchema>

/** Reports invalid servers, and settings of an anonymizer without one. */
export function checkPresidio(
  { analyzer, anonymizer, anonymizers, action }: PresidioConfig,
  backends: readonly NamedBackend[],
  report: ReportIssue,
): void {
  checkTarget(analyzer, backends, (path, message) => report(['analyzer', ...path], message))
  if (anonymizer)
    checkTarget(anonymizer, backends, (path, message) => report(['anonymizer', ...path], message))
  else if (anonymizers !== undefined) report(['anonymizers'], 'needs an anonymizer')
  if (anonymizer && action !== undefined && action !== 'mask')
    report(['anonymizer'], `has no effect with action ${action}`)
}
