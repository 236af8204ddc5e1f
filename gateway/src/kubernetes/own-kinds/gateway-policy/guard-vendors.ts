import { analysisFields } from '../../../policies/guardrails/kinds/azure-content-safety/config.ts'
import { duration, exactlyOne, name, object, optional, type Schema } from '../../../schema/dsl.ts'
import { credentialLocation } from '../../../upstream/credentials/place-config.ts'
import { credentialKey } from '../backend-settings.ts'
import { clusterEnumeration } from '../enumerations.ts'
import { secretEntrySchema, secretReferenceSchema } from '../references.ts'

/** Entry of a Secret with a credential of Google, if the reference names none. */
export const googleCredentialKey = 'credentials.json'

// Every field is in the CRD for each kind, direction and protocol: the limit of the API server is its size.
const http = object(
  { requestTimeout: optional(duration({ doc: 'Time limit of a check.', default: '10s' })) },
  { doc: 'Calls of the service.' },
)

// Required: the identity of the proxy is not the authority of the author of a policy.
function policies<T>(auth: Schema<T>) {
  return object({ auth, http: optional(http) }, { doc: 'Credential and connection of the calls.' })
}

const keyFields = {
  secretRef: secretEntrySchema('Key of the service. A prefix `Bearer ` of the entry is removed.', {
    key: credentialKey,
  }),
  location: optional(credentialLocation),
}

const verdictFields = {
  failureMode: optional(
    clusterEnumeration(['failClosed', 'failOpen'], {
      doc: 'Behaviour if the service fails: a timeout, an error or an invalid response. `FailOpen` allows the content.',
      default: 'FailClosed',
    }),
  ),
  action: optional(
    clusterEnumeration(['reject', 'audit'], {
      doc: '`Reject` applies the verdict of the service, `Audit` only records it. `failureMode` applies to both.',
      default: 'Reject',
    }),
  ),
}

const openAIModeration = object(
  {
    model: optional(name({ doc: 'Model of the moderation.', default: 'omni-moderation-latest' })),
    ...verdictFields,
    policies: policies(object(keyFields, { doc: 'Credential at OpenAI.' })),
  },
  { doc: "Rejects content that OpenAI's moderation flags." },
)

const bedrockGuardrails = object(
  {
    identifier: name({ doc: 'Id or ARN of the guardrail.', example: 'gr1abc2def3g' }),
    version: name({ doc: 'Version of the guardrail, or `DRAFT`.', example: '1' }),
    region: name({ doc: 'Region of the guardrail.', example: 'eu-central-1' }),
    ...verdictFields,
    policies: policies(
      exactlyOne(
        {
          secretRef: keyFields.secretRef,
          aws: object(
            {
              secretRef: secretReferenceSchema(
                'Secret with the entries `accessKey` and `secretKey`, and `sessionToken` for temporary keys.',
              ),
            },
            { doc: 'Access key of AWS, which signs the calls.' },
          ),
        },
        {},
        { doc: 'Credential at AWS: a key of Bedrock, or an access key.' },
      ),
    ),
  },
  { doc: 'Rejects or masks content by a guardrail of Amazon Bedrock.' },
)

const googleModelArmor = object(
  {
    projectId: name({ doc: 'Project of the template.', example: 'my-project' }),
    templateId: name({ doc: 'Template with the filters.', example: 'prompts' }),
    location: optional(name({ doc: 'Region of the template.', default: 'us-central1' })),
    ...verdictFields,
    policies: policies(
      object(
        {
          gcp: object(
            {
              secretRef: secretEntrySchema(
                'Credential as JSON of Google, of type `service_account` or `authorized_user`.',
                { key: googleCredentialKey },
              ),
            },
            { doc: 'Credential of Google.' },
          ),
        },
        { doc: 'Credential at Google.' },
      ),
    ),
  },
  { doc: 'Rejects content that matches a filter of Google Cloud Model Armor.' },
)

const azureContentSafety = object(
  {
    endpoint: name({
      doc: 'Host of the Content Safety resource, below `cognitiveservices.azure.com` or `services.ai.azure.com`.',
      example: 'my-resource.cognitiveservices.azure.com',
    }),
    ...analysisFields,
    ...verdictFields,
    policies: policies(
      object(
        { secretRef: keyFields.secretRef },
        { doc: 'Key of the resource, sent as `ocp-apim-subscription-key`.' },
      ),
    ),
  },
  { doc: 'Rejects content by Azure AI Content Safety.' },
)

/** Guards of vendors by name. */
export const vendorKinds = { openAIModeration, azureContentSafety, googleModelArmor, bedrockGuardrails }
