import { Page } from '../../../components/layout/page.tsx'

export default function Limits() {
  return <Page title="Limits">Soon</Page>
}
