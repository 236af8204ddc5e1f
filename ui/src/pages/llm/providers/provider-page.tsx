import { useParams } from 'wouter'
import { ResourceEditor } from '../../resources/resource-editor.tsx'
import { ProviderBasics } from './provider-basics.tsx'

/** Creates or edits the shared settings of a provider. */
export default function ProviderPage() {
  const { id = '' } = useParams()
  return (
    <ResourceEditor
      kind="llm.provider"
      id={id === 'new' ? undefined : id}
      noun="provider"
      about="Address and credential that models refer to by name."
      path="/llm/providers"
      initial={{ name: '', provider: 'openai', params: {} }}
      hidden={['name', 'provider']}
      before={({ form, schema, readOnly }) => (
        <ProviderBasics form={form} schema={schema} readOnly={readOnly} />
      )}
    />
  )
}
