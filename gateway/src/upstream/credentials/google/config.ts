import { enumeration, type Infer, name, object, optional, secretSource } from '../../../schema/dsl.ts'

/** `backendAuth.gcp`. */
export const googleAuthSchema = object(
  {
    type: optional(
      enumeration(['accessToken', 'idToken'], {
        doc: '`accessToken` for the APIs of Google; `idToken` for Cloud Run, Cloud Functions and Identity-Aware Proxy.',
        default: 'accessToken',
      }),
    ),
    audience: optional(
      name({
        doc: 'Audience of id tokens.',
        example: 'https://service-abc.a.run.app',
        default: '`https://` and the host of the backend',
      }),
    ),
    credential: optional(
      secretSource({
        doc: 'Credential as JSON of Google: key of a service account, workload identity federation (`external_account`), impersonation, or authorized user. Without it: the file of `GOOGLE_APPLICATION_CREDENTIALS`, else that of the `gcloud` login, else the service account of the machine.',
        example: '$GOOGLE_CREDENTIAL',
      }),
    ),
  },
  { doc: 'Tokens of Google for the identity of the gateway.' },
)

export type GoogleAuthConfig = Infer<typeof googleAuthSchema>
