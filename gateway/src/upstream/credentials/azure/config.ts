import {
  exactlyOne,
  type Infer,
  name,
  object,
  optional,
  type SecretSource,
  secretSource,
  string,
} from '../../../schema/dsl.ts'

const clientSecret = object(
  {
    tenant_id: name({ doc: 'Id of the Entra tenant.' }),
    client_id: name({ doc: 'Id of the application.' }),
    client_secret: secretSource({ doc: 'Secret of the application.', example: '$AZURE_CLIENT_SECRET' }),
  },
  { doc: 'Application with a secret.' },
)

const userAssignedIdentity = exactlyOne(
  {
    clientId: name({ doc: 'Client id of the identity.' }),
    objectId: name({ doc: 'Object id of the identity.' }),
    resourceId: name({ doc: 'Resource id of the identity.' }),
  },
  {},
  { doc: 'An identity assigned by users. Without it, the identity of the system is used.' },
)

const managedIdentity = object(
  { userAssignedIdentity: optional(userAssignedIdentity) },
  { doc: 'Managed identity of the virtual machine, App Service or Container App.' },
)

const explicitConfig = exactlyOne(
  {
    clientSecret,
    managedIdentity,
    workloadIdentity: object(
      {},
      {
        doc: 'Workload identity of a Kubernetes service account: `AZURE_TENANT_ID`, `AZURE_CLIENT_ID` and `AZURE_FEDERATED_TOKEN_FILE` of the environment.',
      },
    ),
  },
  {},
  { doc: 'One kind of identity.' },
)

/** `backendAuth.azure`. */
export const azureAuthSchema = exactlyOne(
  {
    explicitConfig,
    implicit: object(
      {},
      {
        doc: 'Identity by the environment: a client secret (`AZURE_TENANT_ID`, `AZURE_CLIENT_ID`, `AZURE_CLIENT_SECRET`), else a workload identity, else a managed identity.',
      },
    ),
  },
  {
    scope: optional(
      string({
        doc: 'Scope of the tokens.',
        example: 'https://cognitiveservices.azure.us/.default',
        default:
          '`https://ai.azure.com/.default` for hosts below `services.ai.azure.com`, else `https://cognitiveservices.azure.com/.default`',
        advanced: true,
      }),
    ),
  },
  { doc: 'Tokens of Microsoft Entra for the identity of the gateway.' },
)

export type AzureAuthConfig = Infer<typeof azureAuthSchema>

/** Application with a secret. */
export type ClientSecretConfig = {
  readonly tenant_id: string
  readonly client_id: string
  readonly client_secret: SecretSource
}

/** Kind and id of an identity assigned by users. */
export type AssignedIdentity = Infer<typeof userAssignedIdentity>
