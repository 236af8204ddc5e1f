import { enumeration, type Infer, name, object, optional, type Schema, string } from '../../../schema/dsl.ts'
import { decoded, queryParts } from '../../../upstream/credentials/credential-location.ts'
import { isResponsesOnly, renamesMaxTokens, withoutChat } from './openai.ts'
import { batchPaths, mediaPaths, openAiPaths, realtimePaths } from './openai-compatible.ts'
import { pathSegment } from './path-segment.ts'
import type { Provider, ProviderCall, ProviderKind, ProviderPaths } from './provider.ts'

/** `azure` of a provider. */
const fields = {
  resourceName: name({ doc: 'Name of the Azure resource, the first label of its host.', example: 'contoso' }),
  resourceType: enumeration(['openAI', 'foundry', 'aiServices'], {
    doc: '`openAI`: Azure OpenAI at `<resourceName>.openai.azure.com`. `foundry`: project of Azure AI Foundry at `<resourceName>.services.ai.azure.com`, Claude models included. `aiServices` is another name of `foundry`.',
  }),
  apiVersion: optional(
    string({
      doc: 'API version of Azure OpenAI: `v1`, `preview`, or a date, whose paths contain the model as deployment.',
      default: 'v1',
      example: '2024-10-21',
    }),
  ),
  projectName: optional(name({ doc: 'Project of Azure AI Foundry.', default: 'the name of the resource' })),
} satisfies Record<string, Schema>

const settingsSchema = object(fields, { doc: 'Resource of Azure.' })

type AzureSettings = Infer<typeof settingsSchema>

/** The settings as keys of `llm.models[].params`. */
export const azureParams = {
  azureResourceName: optional(fields.resourceName),
  azureResourceType: optional(fields.resourceType),
  azureApiVersion: fields.apiVersion,
  azureProjectName: fields.projectName,
} satisfies Record<string, Schema>

const { moderations: _, image_variations: __, ...azureMedia } = mediaPaths

/** Calls of models. Moderation is a different service: Azure AI Content Safety. */
const azurePaths = { ...openAiPaths, ...azureMedia, ...realtimePaths }

/** Claude models are only available through the API of Anthropic. */
const claudePaths: ProviderPaths = {
  messages: '/anthropic/v1/messages',
  count_tokens: '/anthropic/v1/messages/count_tokens',
}

/** Azure OpenAI and Azure AI Foundry. https://learn.microsoft.com/azure/ai-foundry/openai/reference */
export const azureKind: ProviderKind = {
  name: 'azure',
  calls: Object.keys({ ...azurePaths, ...claudePaths, ...batchPaths }),
  fields,
  params: {
    resourceName: 'azureResourceName',
    resourceType: 'azureResourceType',
    apiVersion: 'azureApiVersion',
    projectName: 'azureProjectName',
  },
  required: ['resourceName', 'resourceType'],
  ambientAuth: { azure: { implicit: {} } },
  check({ resourceName, resourceType, apiVersion, projectName }: AzureSettings, report) {
    if (!/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/i.test(resourceName))
      report('resourceName', 'must be letters, digits and hyphens: the first label of the host')
    if (apiVersion !== undefined && !/^(?:v1|preview|\d{4}-\d{2}-\d{2}(?:-preview)?)$/.test(apiVersion))
      report('apiVersion', 'must be v1, preview or a date such as 2024-10-21')
    if (projectName !== undefined && !/^[a-z0-9][a-z0-9._-]*$/i.test(projectName))
      report('projectName', 'must be letters, digits, hyphens, underscores and dots')
    if (resourceType === 'openAI') {
      if (projectName !== undefined) report('projectName', 'is only valid with resourceType foundry')
    } else if (apiVersion !== undefined && apiVersion !== 'v1') {
      report('apiVersion', 'must be v1 with resourceType foundry')
    }
  },
  configure: (settings: AzureSettings) =>
    settings.resourceType === 'openAI' ? azureOpenAi(settings) : azureFoundry(settings),
}

const shared = {
  name: 'azure',
  authorize({ headers }, credential) {
    // Tokens of Entra are JWTs, which begin with an encoded brace and quote; keys have a separate header.
    if (credential.startsWith('eyJ')) headers['authorization'] = `Bearer ${credential}`
    else headers['api-key'] = credential
  },
} satisfies Partial<Provider>

function azureOpenAi({ resourceName, apiVersion = 'v1' }: AzureSettings): Provider {
  const address = `https://${resourceName}.openai.azure.com`
  if (apiVersion === 'v1' || apiVersion === 'preview') {
    const paths = pathsBelow('/openai/v1', { ...azurePaths, ...batchPaths })
    return {
      ...shared,
      address,
      paths,
      pathsFor: choosePaths(paths),
      passthroughPrefix: '/openai/v1',
      editQuery: withVersion(apiVersion === 'v1' ? undefined : apiVersion),
      renamesMaxTokens,
    }
  }
  return {
    ...shared,
    address,
    paths: {},
    pathsFor({ model }) {
      const deployment = pathSegment(model)
      if (deployment === undefined) return {}
      const paths = {
        ...pathsBelow(`/openai/deployments/${deployment}`),
        ...pathsBelow('/openai', { ...batchPaths, ...realtimePaths, responses: '/responses' }),
      }
      return isResponsesOnly(model) ? withoutChat(paths) : paths
    },
    passthroughPrefix: '/openai',
    namesOtherModel(path, model) {
      const start = path.indexOf(deployments)
      return start !== -1 && !path.slice(start + deployments.length).startsWith(`${model.toLowerCase()}/`)
    },
    realtimeModelParameter: 'deployment',
    editQuery: withVersion(apiVersion),
    renamesMaxTokens: (model) => apiVersion >= firstWithNewLimit && renamesMaxTokens(model),
  }
}

const deployments = '/deployments/'

/** First API version that accepts `max_completion_tokens`. */
const firstWithNewLimit = '2024-09-01-preview'

function azureFoundry({ resourceName, projectName = resourceName }: AzureSettings): Provider {
  const prefix = `/api/projects/${projectName}/openai/v1`
  const paths = pathsBelow(prefix)
  const chosenPaths = choosePaths(paths)
  return {
    ...shared,
    address: `https://${resourceName}.services.ai.azure.com`,
    paths,
    pathsFor: (call) => (call.model.toLowerCase().startsWith('claude') ? claudePaths : chosenPaths(call)),
    passthroughPrefix: prefix,
    editQuery: withVersion(undefined),
    // Required by the API of Anthropic, and without effect on the other.
    defaultHeaders: { 'anthropic-version': '2023-06-01' },
    renamesMaxTokens,
  }
}

/** Chooses by the name of the deployment, which is that of its model by default. */
function choosePaths(paths: ProviderPaths): (call: ProviderCall) => ProviderPaths {
  const others = withoutChat(paths)
  return ({ model }) => (isResponsesOnly(model) ? others : paths)
}

function pathsBelow(prefix: string, paths: Readonly<Record<string, string>> = azurePaths): ProviderPaths {
  return Object.fromEntries(Object.entries(paths).map(([call, path]) => [call, prefix + path]))
}

/** Services decode names of parameters, and ignore their case. */
function isVersion(name: string): boolean {
  return decoded(name).toLowerCase() === 'api-version'
}

/** Replaces the version of the client, whose SDK may send one. */
function withVersion(version: string | undefined): (query: string) => string {
  const own = version === undefined ? [] : [`api-version=${version}`]
  const ofOnly = own.length === 0 ? '' : `?${own[0]}`
  return (query) => {
    if (query.length < 2) return ofOnly
    const others = queryParts(query).flatMap(({ name, text }) => (isVersion(name) ? [] : [text]))
    const parts = [...own, ...others]
    return parts.length === 0 ? '' : `?${parts.join('&')}`
  }
}
