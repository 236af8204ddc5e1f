import { boolean, type Infer, integer, list, name, object, optional, string } from '../../../../schema/dsl.ts'
import type { ReportIssue } from '../../../../schema/report.ts'
import type { Phase } from '../../guard.ts'
import { checkService, detectorFields } from '../service/config.ts'

const apiVersion = (version: string) =>
  optional(name({ doc: 'Version of the API.', default: version, advanced: true }))

/** Kinds of analysis. */
export const analysisFields = {
  analyzeText: optional(
    object(
      {
        severityThreshold: optional(
          integer(
            { doc: 'Lowest severity that is rejected; the service returns 0, 2, 4 or 6.', default: 2 },
            { min: 0, max: 7 },
          ),
        ),
        blocklistNames: optional(
          list(name({ doc: 'Name of a blocklist.' }), { doc: 'Blocklists whose matches are rejected.' }),
        ),
        haltOnBlocklistHit: optional(
          boolean({ doc: 'Skips the analysis of a text after a match of a blocklist.', default: false }),
        ),
        apiVersion: apiVersion('2024-09-01'),
      },
      { doc: 'Analysis for hate, self-harm, sexual content and violence, and for blocklists.' },
    ),
  ),
  detectJailbreak: optional(
    object(
      { apiVersion: apiVersion('2024-02-15-preview') },
      { doc: 'Detection of jailbreak attempts in requests, by a preview of the API.' },
    ),
  ),
  promptShields: optional(
    object(
      { apiVersion: apiVersion('2024-09-01') },
      {
        doc: 'Detection of attacks in requests: in prompts, and in results of tools as documents. Successor of `detectJailbreak`.',
      },
    ),
  ),
}

/** `azureContentSafety`: https://learn.microsoft.com/rest/api/contentsafety/text-operations. */
export const azureContentSafetySchema = object(
  {
    endpoint: string({
      doc: 'Host or URL of the Content Safety resource.',
      example: 'my-resource.cognitiveservices.azure.com',
    }),
    ...analysisFields,
    ...detectorFields,
  },
  {
    doc: 'Rejects content by Azure AI Content Safety. The credential is `policies.backendAuth`: a `key` of the resource, or an identity of Microsoft Entra, by default that of the environment.',
    example: { endpoint: 'my-resource.cognitiveservices.azure.com', analyzeText: {} },
  },
)

export type AzureContentSafetyConfig = Infer<typeof azureContentSafetySchema>

/** Reports errors of the service, a guard without analysis, and analyses of requests in a response guard. */
export function checkAzureContentSafety(
  config: AzureContentSafetyConfig,
  phase: Phase,
  report: ReportIssue,
): void {
  checkService(config, report)
  const { analyzeText, detectJailbreak, promptShields } = config
  if (analyzeText === undefined && detectJailbreak === undefined && promptShields === undefined)
    report([], 'must have analyzeText, detectJailbreak or promptShields')
  if (phase === 'request') return
  for (const [key, value] of Object.entries({ detectJailbreak, promptShields }))
    if (value !== undefined) report([key], 'is only valid in request guards')
}
