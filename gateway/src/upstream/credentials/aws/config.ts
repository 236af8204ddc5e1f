import {
  anyOfShapes,
  cel,
  type Infer,
  list,
  name,
  object,
  optional,
  secret,
  string,
} from '../../../schema/dsl.ts'
import { locationRoots } from '../credential-location.ts'

/** Variables of the expressions of a session. */
export const sessionRoots: ReadonlySet<string> = new Set([...locationRoots, 'apiKey'])

const expression = cel({ doc: 'Expression of the value, for each request.', example: 'jwt.sub' }, [
  ...sessionRoots,
])

const sessionTag = object(
  {
    key: name({ doc: 'Key of the tag.', example: 'team' }),
    value: optional(string({ doc: 'Value of the tag. One of `value` and `expression` is set.' })),
    expression: optional(expression),
  },
  { doc: 'A tag of the session.' },
)

const assumeRole = object(
  {
    roleArn: name({ doc: 'ARN of the role.', example: 'arn:aws:iam::123456789012:role/gateway' }),
    sessionName: optional(
      anyOfShapes(
        [
          name({ doc: 'Name of the session.' }),
          object({ expression }, { doc: 'Name computed for each request.' }),
        ],
        {
          doc: 'Name of the session in CloudTrail and cost reports: 2 to 64 letters, digits and `_+=,.@-`, or `{expression}`.',
          default: 'tollgate',
        },
      ),
    ),
    tags: optional(list(sessionTag, { doc: 'Tags of the session, for cost allocation.' }, { max: 50 })),
  },
  { doc: 'Role of the Security Token Service (STS) whose keys sign the requests.' },
)

const accessKey = secret({ doc: 'Id of the access key.', example: '$AWS_ACCESS_KEY_ID' })

/** `backendAuth.aws`. */
export const awsAuthSchema = object(
  {
    accessKeyId: optional(accessKey),
    secretAccessKey: optional(
      secret({ doc: 'Secret of the access key.', example: '$AWS_SECRET_ACCESS_KEY' }),
    ),
    sessionToken: optional(
      secret({ doc: 'Session token of temporary keys.', example: '$AWS_SESSION_TOKEN' }),
    ),
    region: optional(
      name({
        doc: 'Region of the signature.',
        example: 'eu-central-1',
        default:
          'the region of the provider or in the host of the backend, else `AWS_REGION` or `AWS_DEFAULT_REGION` of the environment, else that of the profile',
      }),
    ),
    serviceName: optional(
      name({
        doc: 'Service of the signature, such as `execute-api` or `lambda`.',
        default: '`bedrock`',
      }),
    ),
    assumeRole: optional(assumeRole),
  },
  {
    doc: 'Signs requests with Signature Version 4 of AWS. Without keys, the identity of the environment applies: variables, shared profile, web identity, container or EC2 instance.',
  },
)

export type AwsAuthConfig = Infer<typeof awsAuthSchema>

export type AssumeRoleConfig = Infer<typeof assumeRole>
